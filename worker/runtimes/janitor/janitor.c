/* Give everything below the working directory to the directory's own owner, for its owner only.

   A job's container writes /out as a user that is nobody on the host, with any modes: a worker that is not root could
   neither read nor delete what it left. This program runs in a container of its own once the job's is dead, as root with
   three capabilities, and sees that one folder. It follows no link and opens directories only. Nothing is linked in:
   tools/build_janitor.py compiles it for each platform.

   Exit status: 0 done; 3 something lay deeper than DEPTH, and everything was deleted; 1 the kernel refused. */

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

enum { DONE = 0, FAILED = 1, DEEP = 3, DEPTH = 64, BUFFER = 8192 };

struct entry {
    unsigned long long inode;
    long long offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n and $-16, %rsp\n call run\n");
static long ask(long number, long a, long b, long c, long d, long e) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: bl run\n");
static long ask(long number, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#endif

static int is_dot(const char *name) {
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static long open_folder(long at, const char *name) {
    return ask(__NR_openat, at, (long)name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, 0);
}

static long look(long at, const char *name, long flags, struct statx *found) {
    return ask(__NR_statx, at, (long)name, flags | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, (long)found);
}

static int give(long folder, int depth, unsigned uid, unsigned gid) {
    char buffer[BUFFER] __attribute__((aligned(8)));
    for (;;) {
        long got = ask(__NR_getdents64, folder, (long)buffer, sizeof buffer, 0, 0);
        if (got <= 0)
            return got == 0 ? DONE : FAILED;
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
            const char *name = ((struct entry *)(buffer + at))->name;
            struct statx found;
            if (is_dot(name))
                continue;
            if (look(folder, name, 0, &found) < 0)
                return FAILED;
            int is_folder = (found.stx_mode & S_IFMT) == S_IFDIR, is_file = (found.stx_mode & S_IFMT) == S_IFREG;
            if (ask(__NR_fchownat, folder, (long)name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
                return FAILED;
            if ((is_folder || is_file) && ask(__NR_fchmodat, folder, (long)name, is_folder ? 0700 : 0600, 0, 0) < 0)
                return FAILED;
            if (!is_folder)
                continue;
            if (depth == DEPTH)
                return DEEP;
            long below = open_folder(folder, name);
            if (below < 0)
                return FAILED;
            int end = give(below, depth + 1, uid, gid);
            ask(__NR_close, below, 0, 0, 0, 0);
            if (end != DONE)
                return end;
        }
    }
}

/* Move a folder to the top under a new name, so that a tree of any depth takes DEPTH descriptors. */
static int lift(long folder, const char *name, long top) {
    static unsigned long count;
    char fresh[] = "hearth-0000000000000000";
    for (int tries = 0; tries < 1 << 20; tries++) {
        unsigned long rest = ++count;
        for (int digit = sizeof fresh - 2; fresh[digit] != '-'; digit--, rest >>= 4)
            fresh[digit] = "0123456789abcdef"[rest & 15];
        if (ask(__NR_renameat2, folder, (long)name, top, (long)fresh, 1 /* RENAME_NOREPLACE */) >= 0)
            return DONE;
    }
    return FAILED;
}

static int empty(long folder, int depth, long top) {
    char buffer[BUFFER] __attribute__((aligned(8)));
    for (long seen = 1; seen > 0;) {
        seen = 0;
        if (ask(__NR_lseek, folder, 0, 0, 0, 0) < 0)
            return FAILED;
        for (;;) {
            long got = ask(__NR_getdents64, folder, (long)buffer, sizeof buffer, 0, 0);
            if (got < 0)
                return FAILED;
            if (got == 0)
                break;
            for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
                const char *name = ((struct entry *)(buffer + at))->name;
                if (is_dot(name))
                    continue;
                seen++;
                if (ask(__NR_unlinkat, folder, (long)name, 0, 0, 0) >= 0)
                    continue;
                if (depth == DEPTH) {
                    if (lift(folder, name, top) != DONE)
                        return FAILED;
                    continue;
                }
                long below = open_folder(folder, name);
                if (below < 0 || empty(below, depth + 1, top) != DONE)
                    return FAILED;
                ask(__NR_close, below, 0, 0, 0, 0);
                if (ask(__NR_unlinkat, folder, (long)name, AT_REMOVEDIR, 0, 0) < 0)
                    return FAILED;
            }
        }
    }
    return DONE;
}

__attribute__((used, noreturn)) static void run(void) {
    struct statx owner;
    long top = open_folder(AT_FDCWD, ".");
    int end = FAILED;
    if (top >= 0 && look(top, "", AT_EMPTY_PATH, &owner) >= 0) {
        end = give(top, 1, owner.stx_uid, owner.stx_gid);
        if (end == DEEP && empty(top, 1, top) != DONE)
            end = FAILED;
    }
    for (;;)
        ask(__NR_exit_group, end, 0, 0, 0, 0);
}
