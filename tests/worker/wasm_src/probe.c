/* One program that does what its first argument names; used by test_wasm.py to look at the sandbox from inside. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    if (!f) { printf("%s: %s\n", path, strerror(errno)); return 1; }
    fputs(text, f);
    return fclose(f);
}

static void show(const char *path) {
    char line[256];
    FILE *f = fopen(path, "r");
    if (!f) { printf("%s: %s\n", path, strerror(errno)); return; }
    while (fgets(line, sizeof line, f)) printf("%s: %s\n", path, line);
    fclose(f);
}

static void list(const char *path) {
    DIR *d = opendir(path);
    struct dirent *e;
    if (!d) { printf("%s: %s\n", path, strerror(errno)); return; }
    while ((e = readdir(d))) printf("%s %d %llu\n", e->d_name, e->d_type, (unsigned long long)e->d_ino);
    closedir(d);
}

static void tell(const char *what, int rc) { printf("%s: %s\n", what, rc ? strerror(errno) : "ok"); }

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "files")) {
        show("/in/data.txt");
        show("/job/code.txt");
        show("code.txt"); /* the working directory is /job */
        list("/in");
        tell("mkdir", mkdir("/out/sub", 0755));
        tell("write", write_file("/out/sub/a.txt", "alpha"));
        tell("rename", rename("/out/sub/a.txt", "/out/sub/b.txt"));
        show("/out/sub/../sub/b.txt");
        tell("temp", write_file("/tmp/t", "x"));
        tell("unlink", unlink("/tmp/t"));
        tell("rmdir full", rmdir("/out/sub"));
        FILE *f = fopen("/out/sub/b.txt", "a+");
        fputs("bet", f); fseek(f, 1, SEEK_SET); printf("tail %c\n", fgetc(f)); fclose(f);
        show("/out/sub/b.txt");
        struct stat s;
        stat("/out/sub/b.txt", &s);
        printf("size %lld mtime %lld links %d\n", (long long)s.st_size, (long long)s.st_mtime, (int)s.st_nlink);
        return 0;
    }
    if (!strcmp(mode, "escape")) {
        tell("write /in", write_file("/in/data.txt", "gone"));
        tell("new in /in", write_file("/in/new", "x"));
        tell("write /job", write_file("/job/code.txt", "gone"));
        tell("write cwd", write_file("code.txt", "gone"));
        tell("unlink /in", unlink("/in/data.txt"));
        tell("rename /in", rename("/in/data.txt", "/in/other"));
        tell("steal", rename("/in/data.txt", "/out/stolen"));
        tell("mkdir /job", mkdir("/job/d", 0755));
        tell("truncate", truncate("/in/data.txt", 0));
        show("/etc/passwd");
        show("/out/../../etc/passwd");
        show("../../../../etc/passwd");
        tell("out of /out", write_file("/out/../up", "x"));
        tell("symlink", symlink("/etc/passwd", "/out/link"));
        tell("hard link", link("/in/data.txt", "/out/hard"));
        show("/in/planted"); /* a link that the test put there */
        show("/in/planted_dir/passwd");
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "env")) {
        for (int i = 0; i < argc; i++) printf("arg %s\n", argv[i]);
        for (char **e = environ; *e; e++) printf("env %s\n", *e);
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "clock")) {
        struct timespec a, b;
        uint8_t bytes[8];
        clock_gettime(CLOCK_REALTIME, &a);
        sleep(3600);
        clock_gettime(CLOCK_REALTIME, &b);
        getentropy(bytes, sizeof bytes);
        printf("%lld %lld ", (long long)a.tv_sec, (long long)(b.tv_sec - a.tv_sec));
        for (int i = 0; i < 8; i++) printf("%02x", bytes[i]);
        printf("\n");
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "tick")) { /* a loop that waits for time to pass must end */
        struct timespec a, b;
        int turns = 0;
        clock_gettime(CLOCK_MONOTONIC, &a);
        do clock_gettime(CLOCK_MONOTONIC, &b), turns++; while (b.tv_sec == a.tv_sec && turns < 100000);
        printf("%d\n", turns);
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "deep")) { /* first by making folders, then by moving a tree down again and again */
        char path[600] = "/out";
        for (int i = 0; i < 100; i++) {
            strcat(path, "/d");
            if (mkdir(path, 0755)) { tell("mkdir", 1); break; }
        }
        mkdir("/out/e", 0755);
        tell("move down", rename("/out/d", "/out/e/d"));
        tell("move beside", rename("/out/d", "/out/f"));
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "stale")) { /* a folder that is open while it moves up is no way to move a tree down */
        char path[600] = "/out/c";
        struct stat here, there;
        mkdir("/out/a", 0755); mkdir("/out/a/b", 0755); mkdir("/out/a/b/c", 0755);
        int base = open("/out/a/b/c", O_RDONLY | O_DIRECTORY);
        rename("/out/a/b/c", "/out/c");
        for (int i = 0; i < 100; i++) {
            strcat(path, "/t");
            if (mkdir(path, 0755)) break;
        }
        int below = open("/out/a/b", O_RDONLY | O_DIRECTORY);
        tell("move down", renameat(base, "t", below, "t"));
        fstat(base, &here); stat("/out/c", &there);
        printf("one number: %d\n", here.st_ino == there.st_ino);
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "fill") || !strcmp(mode, "sparse")) { /* fill PATH BYTES */
        static char block[4096];
        long long left = atoll(argv[3]);
        int fd = open(argv[2], O_CREAT | O_WRONLY | O_TRUNC, 0644);
        if (!strcmp(mode, "sparse")) return pwrite(fd, "x", 1, left - 1) != 1;
        unlink(argc > 4 ? argv[2] : "/out/none"); /* bytes of a file without a name count too */
        while (left > 0) {
            ssize_t n = write(fd, block, left < 4096 ? left : 4096);
            if (n < 0) { perror("write"); return 9; }
            left -= n;
        }
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "under")) { /* under FOLDER PATH */
        char folder[300];
        snprintf(folder, sizeof folder, "/out/%s", argv[2]);
        mkdir(folder, 0755);
        return write_file(argv[3], "1") || write_file("/out/done", "1");
    }
    if (!strcmp(mode, "trapped")) { /* trapped PATH BYTES: a file, then the end by a fault */
        static char block[4096];
        int fd = open(argv[2], O_CREAT | O_WRONLY, 0644);
        if (write(fd, block, atoi(argv[3])) < 0) return 9;
        close(fd);
        __builtin_trap();
    }
    if (!strcmp(mode, "hold")) { /* a file without a name keeps its bytes while it is open, and gives them back after */
        static char block[600000];
        int fd = open("/tmp/a", O_CREAT | O_WRONLY, 0644);
        if (write(fd, block, sizeof block) != sizeof block) return 9;
        unlink("/tmp/a");
        if (argc > 2) close(fd);
        fd = open("/tmp/b", O_CREAT | O_WRONLY, 0644);
        if (write(fd, block, sizeof block) != sizeof block) return 9;
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "reuse")) { /* writes many times the cap, but never holds it */
        static char block[60000];
        for (int i = 0; i < 50; i++) {
            int fd = open("/tmp/x", O_CREAT | O_WRONLY | O_TRUNC, 0644);
            if (write(fd, block, sizeof block) != sizeof block) return 9;
            close(fd);
            if (i % 2) unlink("/tmp/x");
            if (i % 5 == 0) rename("/tmp/x", "/tmp/y");
        }
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "names")) { /* names [COUNT DIGITS] */
        char path[300];
        int count = argc > 2 ? atoi(argv[2]) : 20000, digits = argc > 3 ? atoi(argv[3]) : 1;
        for (int i = 0; i < count; i++) {
            snprintf(path, sizeof path, "/out/%0*d", digits, i);
            close(open(path, O_CREAT | O_WRONLY, 0644));
        }
        return 0;
    }
    if (!strcmp(mode, "flood")) {
        printf("first line\n");
        for (int i = 0; i < 40000; i++) printf("%099d\n", i);
        fprintf(stderr, "last words\n");
        printf("last line\n");
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "hog")) {
        for (;;) {
            char *p = malloc(1 << 16);
            if (!p) abort();
            memset(p, 1, 1 << 16);
        }
    }
    if (!strcmp(mode, "spin")) { write_file("/out/done", "1"); for (volatile int i = 0;; i++) ; }
    if (!strcmp(mode, "nan")) { /* signs and payloads of NaN differ between machines unless they are canonical */
        volatile double zero = 0, minus = -0.0;
        double made[3] = {zero / zero, -(zero / minus), (zero / zero) * -1.0};
        for (int i = 0; i < 3; i++) { uint64_t u; memcpy(&u, &made[i], 8); printf("%016llx\n", (unsigned long long)u); }
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "list")) { list("/in"); return write_file("/out/done", "1"); }
    if (!strcmp(mode, "handles")) { /* each handle has read the first names of its folder, and would read on */
        int n = 0;
        while (n < 240) {
            DIR *d = opendir("/in");
            if (!d || !readdir(d)) break;
            n++;
        }
        printf("%d\n", n);
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "relist")) { /* the names of a folder, again and again, of which none is wanted */
        for (int i = 0; i < 20; i++) {
            DIR *d = opendir("/in");
            readdir(d);
            closedir(d);
        }
        return write_file("/out/done", "1");
    }
    if (!strcmp(mode, "fds")) {
        int n = 0;
        while (open("/in/data.txt", O_RDONLY) >= 0) n++;
        printf("%d %s\n", n, strerror(errno));
        for (volatile int i = 0; argc > 2 && n > 300; i++) ; /* fds stay: to be looked at, where the cap is higher */
        return write_file("/out/done", "1");
    }
    fprintf(stderr, "exiting with %s\n", argc > 2 ? argv[2] : "0");
    return argc > 2 ? atoi(argv[2]) : 0;
}
