/* What a program gets of the one GPU that its container has: memory, how fast it fills and moves, and the rate of half-
   precision products that are summed in single precision.

   It speaks to NVIDIA's driver alone, through libcuda.so.1, which whoever gives the GPU puts in the container; the text
   of its kernel, /rate.ptx or the file that it is called with, is compiled there. It prints lines of a name and a number:

     capability MAJOR*10+MINOR      memory BYTES (that it could allocate, fill, and read back)
     from_host BYTES_PER_SECOND     within BYTES_PER_SECOND (read and written)
     half OPERATIONS_PER_SECOND (not below capability 7.0, which has no units for matrices)

   or ends with 1 and `none WORDS` where no program can compute here, `wrong WORDS` where the GPU computes or keeps
   something else than it should, and `fault WORDS` where this program failed. tools/build_programs.py compiles it for each platform. */

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
#define ROUND_OPERATIONS (4.0 * 2 * 16 * 16 * 16 / 32)
#define ROUND_SUM (32 * 16)
/* Numbers of the driver's interface: attributes of a device, and "out of memory". */
enum { PROCESSORS = 16, MAJOR = 75, MINOR = 76, OUT_OF_MEMORY = 2 };

static struct {
    int (*GetErrorName)(int, const char **);
    int (*Init)(unsigned);
    int (*DeviceGetCount)(int *);
    int (*DeviceGet)(int *, int);
    int (*DeviceGetAttribute)(int *, int, int);
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
    FIND(DevicePrimaryCtxRetain, ""), FIND(CtxSetCurrent, ""), FIND(CtxSynchronize, "");
    FIND(MemAlloc, "_v2"), FIND(MemFree, "_v2"), FIND(MemAllocHost, "_v2"), FIND(MemsetD32, "_v2");
    FIND(MemcpyDtoH, "_v2"), FIND(MemcpyHtoDAsync, "_v2"), FIND(MemcpyDtoDAsync, "_v2");
    FIND(EventCreate, ""), FIND(EventRecord, ""), FIND(EventSynchronize, ""), FIND(EventElapsedTime, "");
    FIND(ModuleLoadData, ""), FIND(ModuleGetFunction, ""), FIND(LaunchKernel, "");
}

static const char *how = "none";

static void check(int code, const char *what) {
    const char *name = "";
    if (!code) return;
    cuda.GetErrorName(code, &name);
    end(how, "%s says %d %s", what, code, name ? name : "");
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

/* Take all memory that there is, fill each piece with its own number and read its ends back: memory that is not there,
   or there twice, says another's. Return how many pieces; the largest are the first. */
static int take_memory(void) {
    int count = 0;
    size_t total = 0;
    for (size_t size = LARGEST; size >= SMALLEST && count < MOST_PIECES;) {
        int code = cuda.MemAlloc(&pieces[count].at, size);
        if (code == OUT_OF_MEMORY) {
            size /= 2;
            continue;
        }
        check(code, "cuMemAlloc");
        pieces[count++].bytes = size;
        total += size;
    }
    if (count < 2) end("fault", "it has no memory to give: %zu bytes", total);
    for (int each = 0; each < count; each++) ASK(MemsetD32, pieces[each].at, each + 1, pieces[each].bytes / 4);
    for (int each = 0; each < count; each++) {
        int first = 0, last = 0;
        ASK(MemcpyDtoH, &first, pieces[each].at, sizeof first);
        ASK(MemcpyDtoH, &last, pieces[each].at + pieces[each].bytes - sizeof last, sizeof last);
        if (first != each + 1 || last != each + 1)
            end("wrong", "its memory does not keep what is written: piece %d of %d has %d and %d", each + 1, count, first, last);
    }
    printf("memory %zu\n", total);
    return count;
}

static void copy(void) {
    void *host;
    size_t bytes = pieces[1].bytes, part = bytes < HOST_BYTES ? bytes : HOST_BYTES;
    ASK(MemAllocHost, &host, part);
    /* The first copy of each kind wakes the GPU up, and is not measured. */
    ASK(MemcpyHtoDAsync, pieces[0].at, host, part, 0);
    begin();
    for (int each = 0; each < COPIES; each++) ASK(MemcpyHtoDAsync, pieces[0].at, host, part, 0);
    printf("from_host %.0f\n", (double)COPIES * part / seconds());
    ASK(MemcpyDtoDAsync, pieces[0].at, pieces[1].at, bytes, 0);
    begin();
    for (int each = 0; each < COPIES; each++) ASK(MemcpyDtoDAsync, pieces[0].at, pieces[1].at, bytes, 0);
    printf("within %.0f\n", 2.0 * COPIES * bytes / seconds());
}

static char text[TEXT_BYTES];

static void multiply(int processors, const char *path) {
    handle module, kernel;
    FILE *file = fopen(path, "r");
    if (!file || !fread(text, 1, sizeof text - 1, file)) end("fault", "%s cannot be read", path);
    fclose(file);
    ASK(ModuleLoadData, &module, text);
    ASK(ModuleGetFunction, &kernel, module, "rate");
    unsigned rounds = ROUNDS, blocks = BLOCKS_EACH * processors;
    size_t threads = (size_t)blocks * THREADS;
    void *arguments[] = {&pieces[0].at, &rounds};
    double best = 0;
    for (int each = 0; each < LAUNCHES; each++) {
        begin();
        ASK(LaunchKernel, kernel, blocks, 1, 1, THREADS, 1, 1, 0, 0, arguments, 0);
        double took = seconds();
        if (!best || took < best) best = took;
    }
    float *sums = malloc(threads * sizeof *sums);
    if (!sums || threads * sizeof *sums > pieces[0].bytes) end("fault", "no room for %zu sums", threads);
    ASK(MemcpyDtoH, sums, pieces[0].at, threads * sizeof *sums);
    for (size_t each = 0; each < threads; each++)
        if (sums[each] != (float)ROUND_SUM * ROUNDS) end("wrong", "it computes wrongly: %.0f of %.0f", sums[each], (float)ROUND_SUM * ROUNDS);
    printf("half %.0f\n", ROUND_OPERATIONS * ROUNDS * threads / best);
}

int main(int words, char **word) {
    int count = 0, device;
    handle context;
    setvbuf(stdout, 0, _IONBF, 0);
    load();
    ASK(Init, 0);
    ASK(DeviceGetCount, &count);
    if (count != 1) end("none", "a container that was given one GPU has %d", count);
    ASK(DeviceGet, &device, 0);
    ASK(DevicePrimaryCtxRetain, &context, device);
    ASK(CtxSetCurrent, context);
    how = "fault";
    int major = attribute(device, MAJOR);
    printf("capability %d\n", 10 * major + attribute(device, MINOR));
    ASK(EventCreate, &began, 0);
    ASK(EventCreate, &ended, 0);
    int taken = take_memory();
    copy();
    /* A kernel may need memory of its own. */
    for (int each = 2; each < taken; each++) ASK(MemFree, pieces[each].at);
    ASK(CtxSynchronize);
    if (major >= 7) multiply(attribute(device, PROCESSORS), words > 1 ? word[1] : "/rate.ptx");
    return 0;
}
