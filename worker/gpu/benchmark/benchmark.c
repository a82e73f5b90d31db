/* What a program gets of the one GPU that its container has: memory, how fast it fills and moves, and the rate of half-
   precision products that are summed in single precision.

   It speaks to NVIDIA's driver alone, through libcuda.so.1, which whoever gives the GPU puts in the container; the text
   of its kernels, /kernels.ptx or the file that it is called with, is compiled there. It prints lines of a name and a
   number, as a manifest has them (hearth/market/manifest.py), and `done` at last:

     memory_mib MIB (that it could allocate, fill, and read back whole)    from_host_mb_s 10^6_BYTES_PER_SECOND
     memory_mb_s 10^6_BYTES_PER_SECOND (read and written)                  half_gflops 10^9_OPERATIONS_PER_SECOND

   or ends with 1 and `none WORDS` where no program can compute here, `wrong WORDS` where the GPU computes or keeps
   something else than it should, and `fault WORDS` where this program failed. tools/build_programs.py compiles it for
   each platform. */

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef unsigned long long address;
typedef void *handle;

enum { MIB = 1 << 20, LARGEST = 1024 * MIB, SMALLEST = 16 * MIB, MOST_PIECES = 4096, HOST_BYTES = 64 * MIB, COPIES = 8 };
/* Each warp of 32 threads makes 4 sums a round, and a product of 16 x 16 x 16 is as many additions as multiplications. */
enum { ROUNDS = 1 << 18, THREADS = 256, BLOCKS_EACH = 2, LAUNCHES = 5, TEXT_BYTES = 64 << 10 };
/* One that hangs ends here, also where nobody is left to end its container. */
enum { MOST_SECONDS = 50 };
#define ROUND_OPERATIONS (4.0 * 2 * 16 * 16 * 16 / 32)
#define ROUND_SUM (32 * 16)
/* Numbers of the driver's interface: attributes of a device, and "out of memory". */
enum { PROCESSORS = 16, INTEGRATED = 18, MAJOR = 75, MINOR = 76, OUT_OF_MEMORY = 2 };

static struct {
    int (*GetErrorName)(int, const char **);
    int (*Init)(unsigned);
    int (*DeviceGetCount)(int *);
    int (*DeviceGet)(int *, int);
    int (*DeviceGetAttribute)(int *, int, int);
    int (*DeviceTotalMem)(size_t *, int);
    int (*DevicePrimaryCtxRetain)(handle *, int);
    int (*CtxSetCurrent)(handle);
    int (*CtxSynchronize)(void);
    int (*MemAlloc)(address *, size_t);
    int (*MemFree)(address);
    int (*MemAllocHost)(void **, size_t);
    int (*MemsetD32)(address, unsigned, size_t);
    int (*MemcpyDtoH)(void *, address, size_t);
    int (*MemcpyHtoDAsync)(address, const void *, size_t, handle);
    int (*MemcpyDtoDAsync)(address, address, size_t, handle);
    int (*EventCreate)(handle *, unsigned);
    int (*EventRecord)(handle, handle);
    int (*EventSynchronize)(handle);
    int (*EventElapsedTime)(float *, handle, handle);
    int (*ModuleLoadData)(handle *, const void *);
    int (*ModuleGetFunction)(handle *, handle, const char *);
    int (*LaunchKernel)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
} cuda;

static void end(const char *how, const char *form, ...) {
    va_list rest;
    va_start(rest, form);
    printf("%s ", how);
    vprintf(form, rest);
    printf("\n");
    exit(1);
}

/* Return where the driver has a function; its names carry the version of what they take. */
static void *found(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (!function) end("none", "libcuda.so.1 has no %s", name);
    return function;
}

static void load(void) {
    /* What the driver's library needs, which this program's own folder has. */
    const char *needs[] = {"libm.so.6", "libpthread.so.0", "librt.so.1"};
    for (int each = 0; each < 3; each++)
        if (!dlopen(needs[each], RTLD_NOW | RTLD_GLOBAL)) end("fault", "%s", dlerror());
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) end("none", "a container that was given it has no driver library: %s", dlerror());
#define FIND(name, version) cuda.name = (__typeof__(cuda.name))found(library, "cu" #name version)
    FIND(GetErrorName, ""), FIND(Init, ""), FIND(DeviceGetCount, ""), FIND(DeviceGet, ""), FIND(DeviceGetAttribute, "");
    FIND(DeviceTotalMem, "_v2");
    FIND(DevicePrimaryCtxRetain, ""), FIND(CtxSetCurrent, ""), FIND(CtxSynchronize, "");
    FIND(MemAlloc, "_v2"), FIND(MemFree, "_v2"), FIND(MemAllocHost, "_v2"), FIND(MemsetD32, "_v2");
    FIND(MemcpyDtoH, "_v2"), FIND(MemcpyHtoDAsync, "_v2"), FIND(MemcpyDtoDAsync, "_v2");
    FIND(EventCreate, ""), FIND(EventRecord, ""), FIND(EventSynchronize, ""), FIND(EventElapsedTime, "");
    FIND(ModuleLoadData, ""), FIND(ModuleGetFunction, ""), FIND(LaunchKernel, "");
}

static const char *blame = "none"; /* what it means that a call fails */

static void check(int code, const char *what) {
    const char *name = "";
    if (!code) return;
    cuda.GetErrorName(code, &name);
    end(blame, "%s says %d %s", what, code, name ? name : "");
}
#define ASK(name, ...) check(cuda.name(__VA_ARGS__), "cu" #name)

static handle began, ended;

static void begin(void) { ASK(EventRecord, began, 0); }

/* Return the seconds since `begin`, once all that was asked for since then is done. */
static double seconds(void) {
    float milliseconds = 0;
    ASK(EventRecord, ended, 0);
    ASK(EventSynchronize, ended);
    ASK(EventElapsedTime, &milliseconds, began, ended);
    if (!(milliseconds > 0)) end("fault", "its clock stands still");
    return milliseconds / 1e3;
}

static int attribute(int device, int which) {
    int value = 0;
    ASK(DeviceGetAttribute, &value, which, device);
    return value;
}

static struct {
    address at;
    size_t bytes;
} pieces[MOST_PIECES];

static unsigned blocks;
static handle fill, wrong, rate;

static void launch(handle kernel, void **arguments) {
    ASK(LaunchKernel, kernel, blocks, 1, 1, THREADS, 1, 1, 0, 0, arguments, 0);
}

static char text[TEXT_BYTES];

static void load_kernels(const char *path) {
    handle module;
    FILE *file = fopen(path, "r");
    if (!file || !fread(text, 1, sizeof text - 1, file)) end("fault", "%s cannot be read", path);
    fclose(file);
    ASK(ModuleLoadData, &module, text);
    ASK(ModuleGetFunction, &fill, module, "fill");
    ASK(ModuleGetFunction, &wrong, module, "wrong");
    ASK(ModuleGetFunction, &rate, module, "rate");
}

/* Fill some pieces, each with a salt of its own, and only then read them: memory that is not there, or there twice, says
   another's. `count` is a word of the GPU's. */
static void prove(int taken, address count) {
    for (int each = 0; each < taken; each++) {
        unsigned long long words = pieces[each].bytes / 4;
        unsigned salt = each + 1;
        launch(fill, (void *[]){&pieces[each].at, &words, &salt});
    }
    unsigned found = 0;
    ASK(MemsetD32, count, 0, 1);
    for (int each = 0; each < taken; each++) {
        unsigned long long words = pieces[each].bytes / 4;
        unsigned salt = each + 1;
        launch(wrong, (void *[]){&pieces[each].at, &words, &salt, &count});
    }
    ASK(MemcpyDtoH, &found, count, sizeof found);
    if (found) end("wrong", "its memory does not keep what is written: %u words", found);
}

/* Take all memory that there is; the largest pieces are the first. Return how many. */
static int take_memory(int device) {
    int taken = 0;
    size_t total = 0, most = 0;
    address count;
    ASK(DeviceTotalMem, &most, device);
    ASK(MemAlloc, &count, sizeof(unsigned));
    ASK(MemAlloc, &pieces[0].at, SMALLEST);
    pieces[0].bytes = SMALLEST;
    /* What a first launch takes is taken before the rest is. */
    prove(1, count);
    ASK(MemFree, pieces[0].at);
    for (size_t size = LARGEST; size >= SMALLEST && taken < MOST_PIECES;) {
        /* A driver that hands out the host's memory as well does not do so here. */
        int code = total + size > most ? OUT_OF_MEMORY : cuda.MemAlloc(&pieces[taken].at, size);
        if (code == OUT_OF_MEMORY) {
            size /= 2;
            continue;
        }
        check(code, "cuMemAlloc");
        pieces[taken++].bytes = size;
        total += size;
    }
    if (taken < 2) end("fault", "it has no memory to give: %zu bytes", total);
    prove(taken, count);
    printf("memory_mib %zu\n", total / MIB);
    return taken;
}

static void copy(void) {
    void *host;
    size_t bytes = pieces[1].bytes, part = bytes < HOST_BYTES ? bytes : HOST_BYTES;
    ASK(MemAllocHost, &host, part);
    /* The first copy of each kind wakes the GPU up, and is not measured. */
    ASK(MemcpyHtoDAsync, pieces[0].at, host, part, 0);
    begin();
    for (int each = 0; each < COPIES; each++) ASK(MemcpyHtoDAsync, pieces[0].at, host, part, 0);
    printf("from_host_mb_s %.0f\n", COPIES * part / seconds() / 1e6);
    ASK(MemcpyDtoDAsync, pieces[0].at, pieces[1].at, bytes, 0);
    begin();
    for (int each = 0; each < COPIES; each++) ASK(MemcpyDtoDAsync, pieces[0].at, pieces[1].at, bytes, 0);
    printf("memory_mb_s %.0f\n", 2.0 * COPIES * bytes / seconds() / 1e6);
}

static void multiply(void) {
    unsigned rounds = ROUNDS;
    size_t threads = (size_t)blocks * THREADS;
    float *sums = malloc(threads * sizeof *sums), wanted = (float)ROUND_SUM * ROUNDS;
    if (!sums || threads * sizeof *sums > pieces[0].bytes) end("fault", "no room for %zu sums", threads);
    double best = 0;
    for (int each = 0; each < LAUNCHES; each++) {
        begin();
        launch(rate, (void *[]){&pieces[0].at, &rounds});
        double took = seconds();
        if (!best || took < best) best = took;
        ASK(MemcpyDtoH, sums, pieces[0].at, threads * sizeof *sums);
        for (size_t thread = 0; thread < threads; thread++)
            if (sums[thread] != wanted) end("wrong", "it computes wrongly: %.0f of %.0f", sums[thread], wanted);
    }
    printf("half_gflops %.0f\n", ROUND_OPERATIONS * ROUNDS * threads / best / 1e9);
}

int main(int words, char **word) {
    int count = 0, device;
    handle context;
    setvbuf(stdout, 0, _IONBF, 0);
    alarm(MOST_SECONDS);
    load();
    ASK(Init, 0);
    ASK(DeviceGetCount, &count);
    if (count != 1) end("none", "a container that was given one GPU has %d", count);
    ASK(DeviceGet, &device, 0);
    ASK(DevicePrimaryCtxRetain, &context, device);
    ASK(CtxSetCurrent, context);
    blame = "fault";
    int major = attribute(device, MAJOR);
    if (major < 7) end("fault", "its generation, %d.%d, has no units for matrices", major, attribute(device, MINOR));
    /* To fill that would take the host's from everybody. */
    if (attribute(device, INTEGRATED)) end("fault", "its memory is this machine's own");
    blocks = BLOCKS_EACH * attribute(device, PROCESSORS);
    load_kernels(words > 1 ? word[1] : "/kernels.ptx");
    ASK(EventCreate, &began, 0);
    ASK(EventCreate, &ended, 0);
    int taken = take_memory(device);
    copy();
    for (int each = 2; each < taken; each++) ASK(MemFree, pieces[each].at);
    ASK(CtxSynchronize);
    multiply();
    printf("done\n");
    return 0;
}
