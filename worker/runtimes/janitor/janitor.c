/* Three things that a worker cannot do on its own, on the working directory of a container of this program's.

   Without arguments it gives everything below to the directory's own owner, for its owner only. A job's container
   writes /out as a user that is nobody on the host, with any modes: a worker that is not root could neither read nor
   delete what it left. This program runs once the job's container is dead, as root with three capabilities, and sees
   that one folder. It follows no link and opens directories only.

   `look CONTAINER` measures it again and again while the job's container runs, with what no list of files shows: the
   files of its file system that have no name any more and that a process of that container holds open or mapped. It
   reads only, and prints a line of nine numbers each time: bytes of contents, entries and bytes of blocks of what has
   a name; 1 where something lay deeper than a result may; files without a name, their contents as far as these have
   blocks, and their blocks; how many open files are on their way between sockets, where nobody can measure them; and 1
   where its processes hold more than a look of LOOK_MS gets through, so that there is at least what the others say.
   It ends when the container has no process any more.

   `nodes PREFIX` opens PREFIX0 to PREFIX255, as a job would, and prints a line of two numbers for each that is there:
   its own, and 0 or why it does not open. It runs as a job does, to see which devices one gets.

   Nothing is linked in: tools/build_programs.py compiles it for each platform.

   Exit status: 0 done; 3 something lay deeper than DEPTH, and everything was deleted; 1 the kernel refused. */

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <linux/time_types.h>

enum { DONE = 0, FAILED = 1, DEEP = 3, DEPTH = 64, BUFFER = 8192 };
/* What a result may hold (worker/runtimes/base.py), how many files without a name are told apart, and the pause between
   two looks, which is never less than four times what a look took. LOOK_MS is how long one look goes on among what
   processes hold: two whole ones fit into the 30 s after which the worker counts what nobody looked at as too much. */
enum { MOST_ENTRIES = 16384, MOST_DEPTH = 32, MOST_UNNAMED = 1 << 19, PAUSE_MS = 200, SHARE = 4, LOOK_MS = 2000 };

struct entry {
    unsigned long long inode;
    long long offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

#if defined(__x86_64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call run\n");
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
__asm__(".globl _start\n_start: mov x0, sp\n bl run\n");
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

/* ---- look ---- */

struct count {
    unsigned long size, entries, blocks, deep, unnamed, unnamed_size, unnamed_blocks, adrift, partial;
    long until;
};

static long milliseconds(void) {
    struct __kernel_timespec now;
    ask(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, (long)&now, 0, 0, 0);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Say whether a look has gone on for long enough, and note that something is left out. */
static int is_late(struct count *sum) {
    sum->partial |= milliseconds() > sum->until;
    return sum->partial != 0;
}

/* Inode numbers that were met in this look, in an open table; 0 is no inode. */
static unsigned long met[2 * MOST_UNNAMED];

static int is_new(unsigned long inode) {
    unsigned long at = inode * 0x9e3779b97f4a7c15UL >> 44;
    for (; met[at % (2 * MOST_UNNAMED)] != 0; at++)
        if (met[at % (2 * MOST_UNNAMED)] == inode)
            return 0;
    met[at % (2 * MOST_UNNAMED)] = inode;
    return 1;
}

static int is_same_disk(const struct statx *one, const struct statx *other) {
    return one->stx_dev_major == other->stx_dev_major && one->stx_dev_minor == other->stx_dev_minor;
}

/* Count what has a name. A file or folder that is moved under the walk counts once. */
static void count_named(long folder, int depth, struct count *sum) {
    char buffer[BUFFER] __attribute__((aligned(8)));
    for (long got; (got = ask(__NR_getdents64, folder, (long)buffer, sizeof buffer, 0, 0)) > 0;) {
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
            const char *name = ((struct entry *)(buffer + at))->name;
            struct statx found;
            if (is_dot(name) || look(folder, name, 0, &found) < 0)
                continue;
            int is_folder = (found.stx_mode & S_IFMT) == S_IFDIR;
            if ((is_folder || found.stx_nlink == 1) && !is_new(found.stx_ino))
                continue;
            if (++sum->entries > MOST_ENTRIES)
                return;
            sum->blocks += found.stx_blocks * 512;
            if ((found.stx_mode & S_IFMT) == S_IFREG)
                sum->size += found.stx_size;
            if (!is_folder)
                continue;
            if (depth == MOST_DEPTH) {
                sum->deep = 1;
                continue;
            }
            long below = open_folder(folder, name);
            if (below < 0)
                continue;
            count_named(below, depth + 1, sum);
            ask(__NR_close, below, 0, 0, 0, 0);
        }
    }
}

static long read_file(long at, const char *name, char *text, long most) {
    long file = ask(__NR_openat, at, (long)name, O_RDONLY | O_CLOEXEC, 0, 0), size = 0;
    if (file < 0)
        return 0;
    for (long got = 1; got > 0 && size < most - 1; size += got > 0 ? got : 0)
        got = ask(__NR_read, file, (long)(text + size), most - 1 - size, 0, 0);
    ask(__NR_close, file, 0, 0, 0, 0);
    text[size] = 0;
    return size;
}

/* Return what follows `word` in a text, 0 where it is not in it. */
static const char *after(const char *text, const char *word) {
    for (; *text; text++) {
        long same = 0;
        while (word[same] && text[same] == word[same])
            same++;
        if (!word[same])
            return text + same;
    }
    return 0;
}

/* Count the files without a name among the entries of a folder of links: open descriptors, or mapped files. */
static void count_held(long process, const char *links, const struct statx *disk, struct count *sum) {
    char buffer[BUFFER] __attribute__((aligned(8)));
    long folder = open_folder(process, links);
    if (folder < 0)
        return;
    for (long got; (got = ask(__NR_getdents64, folder, (long)buffer, sizeof buffer, 0, 0)) > 0;) {
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
            const char *name = ((struct entry *)(buffer + at))->name;
            struct statx found;
            if (is_dot(name))
                continue;
            if (is_late(sum)) {
                ask(__NR_close, folder, 0, 0, 0, 0);
                return;
            }
            if (ask(__NR_statx, folder, (long)name, 0, STATX_BASIC_STATS, (long)&found) < 0)
                continue;
            if (links[0] == 'f' && (found.stx_mode & S_IFMT) == S_IFSOCK) {
                char path[64] = "fdinfo/", text[1024];
                for (int end = 7, from = 0; end < 63 && (path[end] = name[from]); end++, from++)
                    path[end + 1] = 0;
                read_file(process, path, text, sizeof text);
                const char *number = after(text, "scm_fds:");
                unsigned long adrift = 0;
                for (; number && (*number == ' ' || *number == '\t'); number++)
                    ;
                for (; number && *number >= '0' && *number <= '9'; number++)
                    adrift = adrift * 10 + (*number - '0');
                if (adrift && is_new(~found.stx_ino))
                    sum->adrift += adrift;
                continue;
            }
            if (found.stx_nlink != 0 || !is_same_disk(&found, disk) || sum->unnamed == MOST_UNNAMED - MOST_ENTRIES)
                continue;
            if (!is_new(found.stx_ino))
                continue;
            unsigned long blocks = found.stx_blocks * 512;
            sum->unnamed++;
            sum->unnamed_blocks += blocks;
            sum->unnamed_size += found.stx_size < blocks ? found.stx_size : blocks;
        }
    }
    ask(__NR_close, folder, 0, 0, 0, 0);
}

/* Count what every thread of a process holds: a thread may have a table of descriptors of its own. */
static void count_threads(long process, const struct statx *disk, struct count *sum) {
    char buffer[BUFFER] __attribute__((aligned(8)));
    long tasks = open_folder(process, "task");
    if (tasks < 0)
        return;
    for (long got; (got = ask(__NR_getdents64, tasks, (long)buffer, sizeof buffer, 0, 0)) > 0;) {
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
            const char *name = ((struct entry *)(buffer + at))->name;
            long thread = is_dot(name) || is_late(sum) ? -1 : open_folder(tasks, name);
            if (thread < 0)
                continue;
            count_held(thread, "fd", disk, sum);
            ask(__NR_close, thread, 0, 0, 0, 0);
        }
    }
    ask(__NR_close, tasks, 0, 0, 0, 0);
}

/* Count what the processes of a container hold, open or `mapped`; return how many there are. */
static long count_processes(const char *container, int mapped, const struct statx *disk, struct count *sum) {
    char buffer[BUFFER] __attribute__((aligned(8)));
    long processes = 0, proc = open_folder(AT_FDCWD, "/proc");
    if (proc < 0)
        return 0;
    for (long got; (got = ask(__NR_getdents64, proc, (long)buffer, sizeof buffer, 0, 0)) > 0;) {
        for (long at = 0; at < got; at += ((struct entry *)(buffer + at))->size) {
            const char *name = ((struct entry *)(buffer + at))->name;
            char groups[BUFFER];
            long process = name[0] < '0' || name[0] > '9' ? -1 : open_folder(proc, name);
            if (process < 0)
                continue;
            if (read_file(process, "cgroup", groups, sizeof groups) > 0 && after(groups, container)) {
                processes++;
                if (mapped)
                    count_held(process, "map_files", disk, sum);
                else
                    count_threads(process, disk, sum);
            }
            ask(__NR_close, process, 0, 0, 0, 0);
        }
    }
    ask(__NR_close, proc, 0, 0, 0, 0);
    return processes;
}

static char *print(char *at, unsigned long number, char end) {
    char digits[20];
    int count = 0;
    do
        digits[count++] = '0' + number % 10;
    while ((number /= 10));
    while (count)
        *at++ = digits[--count];
    *at++ = end;
    return at;
}

static int watch(long top, const char *container) {
    struct statx disk;
    if (look(top, "", AT_EMPTY_PATH, &disk) < 0)
        return FAILED;
    for (int seen = 0;;) {
        struct count sum = {0};
        long began = milliseconds();
        sum.until = began + LOOK_MS;
        for (long at = 0; at < 2 * MOST_UNNAMED; at++)
            met[at] = 0;
        /* What is open first: a file that is unlinked between the two is then counted twice or by the next look, never
           lost for good. What is mapped last: one page can be mapped 65,000 times by each process, and an open file
           is not to hide behind that. */
        long processes = count_processes(container, 0, &disk, &sum);
        if (ask(__NR_lseek, top, 0, 0, 0, 0) < 0)
            return FAILED;
        count_named(top, 1, &sum);
        processes += count_processes(container, 1, &disk, &sum);
        char line[200], *end = line;
        end = print(end, sum.size, ' ');
        end = print(end, sum.entries, ' ');
        end = print(end, sum.blocks, ' ');
        end = print(end, sum.deep, ' ');
        end = print(end, sum.unnamed, ' ');
        end = print(end, sum.unnamed_size, ' ');
        end = print(end, sum.unnamed_blocks, ' ');
        end = print(end, sum.adrift, ' ');
        end = print(end, sum.partial, '\n');
        if (ask(__NR_write, 1, (long)line, end - line, 0, 0) < 0)
            return FAILED;
        if (seen && !processes)
            return DONE;
        seen |= processes > 0;
        long pause = SHARE * (milliseconds() - began);
        if (pause < PAUSE_MS)
            pause = PAUSE_MS;
        struct __kernel_timespec rest = {pause / 1000, pause % 1000 * 1000000};
        ask(__NR_nanosleep, (long)&rest, 0, 0, 0, 0);
    }
}

/* Say which of so many devices are there, and whether they open. */
static int open_nodes(const char *prefix) {
    for (unsigned long number = 0; number < 256; number++) {
        char path[64], line[48], *end = path;
        for (const char *from = prefix; *from && end < path + sizeof path - 8; from++)
            *end++ = *from;
        print(end, number, 0);
        long node = ask(__NR_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0);
        if (node == -2 /* ENOENT */)
            continue;
        end = print(print(line, number, ' '), node < 0 ? -node : 0, '\n');
        if (ask(__NR_write, 1, (long)line, end - line, 0, 0) < 0)
            return FAILED;
        if (node >= 0)
            ask(__NR_close, node, 0, 0, 0, 0);
    }
    return DONE;
}

__attribute__((used, noreturn)) static void run(long *stack) {
    struct statx owner;
    long top = open_folder(AT_FDCWD, ".");
    int end = FAILED;
    if (stack[0] == 3 && *(const char *)stack[2] == 'n') {
        end = open_nodes((const char *)stack[3]);
    } else if (stack[0] == 3 && top >= 0) {
        end = watch(top, (const char *)stack[3]);
    } else if (stack[0] == 1 && top >= 0 && look(top, "", AT_EMPTY_PATH, &owner) >= 0) {
        end = give(top, 1, owner.stx_uid, owner.stx_gid);
        if (end == DEEP && empty(top, 1, top) != DONE)
            end = FAILED;
    }
    for (;;)
        ask(__NR_exit_group, end, 0, 0, 0, 0);
}
