/* A libcuda.so.1 that plays a machine: it has the functions that worker/gpu/benchmark/benchmark.c calls, and refuses what
 * the real one refuses: a call before cuInit or without a context, memory that was not given, a kernel whose text is for a
 * newer GPU. The machine is machine.h's; its clock is by the rates that the machine's file says.
 *
 * A piece of memory holds what one kernel left there, and the sums are what the text adds: its products are counted.
 */
#include "machine.h"

enum {
	OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201, NO_BINARY = 209, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
	MISMATCH = 803, PIECES = 8192, RESERVED = 400 << 20,
};
typedef struct { u64 at; size_t bytes; unsigned value, salt; double sum; size_t sums; } piece;
static piece pieces[PIECES];
static struct { char *at; size_t bytes; } host;
static struct { double at; int recorded; } events[8];
static struct { const char *text; int products; } module;
enum { FILL, WRONG, RATE, KERNELS };
static const char *const entries[KERNELS] = {
	".entry fill(.param .u64 piece, .param .u64 words, .param .u32 salt)",
	".entry wrong(.param .u64 piece, .param .u64 words, .param .u32 salt, .param .u64 count)",
	".entry rate(.param .u64 sums, .param .u32 rounds)"};
static int launches;
static int begun, context, event_count;
static size_t given;
static u64 next = 0x7f0000000000ULL;
static double clock_seconds;

/* A process that names a GPU sees no other. */
static void see(void) {
	const char *named = getenv("CUDA_VISIBLE_DEVICES");
	look();
	for (int i = 0; named && i < now.gpus; i++)
		if (!strcmp(named, now.gpu[i].uuid)) { now.gpu[0] = now.gpu[i], now.gpus = 1; return; }
	if (named) now.gpus = 0;
}
static gpu *one(void) { return &now.gpu[0]; }
#define NEED_INIT do { if (!begun) return NOT_INITIALIZED; see(); } while (0)
#define NEED do { NEED_INIT; if (!context) return INVALID_CONTEXT; if (!now.gpus || one()->lost) return NO_DEVICE; } while (0)

static piece *in(u64 at, size_t bytes) {
	for (int i = 0; i < PIECES; i++)
		if (pieces[i].bytes && at >= pieces[i].at && at + bytes <= pieces[i].at + pieces[i].bytes) return &pieces[i];
	return 0;
}

int cuGetErrorName(int code, const char **out) {
	static const struct { int code; const char *name; } known[] = {
		{OK, "CUDA_SUCCESS"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		{NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"}, {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
		{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
		{NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
		{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
		{NOT_READY, "CUDA_ERROR_NOT_READY"}, {MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}, {999, "CUDA_ERROR_UNKNOWN"}};
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].code == code) { *out = known[i].name; return OK; }
	*out = 0;
	return INVALID_VALUE;
}
int cuInit(unsigned flags) {
	see();
	if (flags) return INVALID_VALUE;
	while (now.cuhang) pause();
	if (now.cuinit) return now.cuinit;
	if (now.absent || !now.gpus) return NO_DEVICE;
	begun = 1;
	return OK;
}
int cuDeviceGetCount(int *out) { NEED_INIT; *out = now.gpus; return OK; }
int cuDeviceGet(int *out, int index) { NEED_INIT; if (index < 0 || index >= now.gpus) return INVALID_DEVICE; *out = index; return OK; }
int cuDeviceGetAttribute(int *out, int which, int device) {
	NEED_INIT;
	if (device < 0 || device >= now.gpus) return INVALID_DEVICE;
	gpu *asked = &now.gpu[device];
	switch (which) {
	case 16: *out = asked->processors; return OK;
	case 18: *out = asked->integrated; return OK;
	case 75: *out = asked->cc_major; return OK;
	case 76: *out = asked->cc_minor; return OK;
	default: return INVALID_VALUE;
	}
}
static u64 memory_of(const gpu *asked) { return asked->mig == 1 && asked->slices ? asked->slice[0].total : asked->total; }
int cuDeviceTotalMem_v2(size_t *out, int device) { NEED_INIT; if (device < 0 || device >= now.gpus) return INVALID_DEVICE; *out = memory_of(&now.gpu[device]); return OK; }
int cuDevicePrimaryCtxRetain(void **out, int device) { NEED_INIT; if (device < 0 || device >= now.gpus) return INVALID_DEVICE; *out = &context; return OK; }
int cuCtxSetCurrent(void *which) { NEED_INIT; context = which == &context; return which && !context ? INVALID_CONTEXT : OK; }
int cuCtxSynchronize(void) { NEED; return OK; }
int cuMemAlloc_v2(u64 *out, size_t bytes) {
	NEED;
	u64 total = memory_of(one()) + one()->spill;
	if (!bytes) return INVALID_VALUE;
	if (given + bytes + one()->used + RESERVED > total) return OUT_OF_MEMORY;
	for (int i = 0; i < PIECES; i++)
		if (!pieces[i].bytes) {
			pieces[i] = (piece){.at = next, .bytes = bytes};
			*out = next, next += bytes + 4096, given += bytes;
			return OK;
		}
	return OUT_OF_MEMORY;
}
int cuMemFree_v2(u64 at) {
	NEED;
	piece *found = in(at, 1);
	if (!found || found->at != at) return INVALID_VALUE;
	given -= found->bytes, found->bytes = 0;
	return OK;
}
int cuMemAllocHost_v2(void **out, size_t bytes) {
	NEED;
	if (host.at || !(host.at = malloc(bytes))) return OUT_OF_MEMORY;
	*out = host.at, host.bytes = bytes;
	return OK;
}
int cuMemsetD32_v2(u64 at, unsigned value, size_t count) {
	NEED;
	piece *found = in(at, count * 4);
	if (!found || at % 4) return INVALID_VALUE;
	found->value = value, found->sums = 0;
	return OK;
}
int cuMemcpyDtoH_v2(void *out, u64 at, size_t bytes) {
	NEED;
	piece *found = in(at, bytes);
	if (!found || bytes % 4) return INVALID_VALUE;
	int wrong = one()->sumfault || (one()->flaky && launches == 1);
	for (size_t i = 0; i < bytes / 4; i++) {
		float sum = found->sum / (wrong && i == found->sums - 1 ? 2 : 1);
		if (i < found->sums) memcpy((char *)out + 4 * i, &sum, 4);
		else memcpy((char *)out + 4 * i, &found->value, 4);
	}
	return OK;
}
int cuMemcpyHtoDAsync_v2(u64 at, const void *from, size_t bytes, void *stream) {
	NEED;
	if (stream || !in(at, bytes) || (const char *)from < host.at || (const char *)from + bytes > host.at + host.bytes) return INVALID_VALUE;
	clock_seconds += bytes / one()->from_host;
	return OK;
}
int cuMemcpyDtoDAsync_v2(u64 at, u64 from, size_t bytes, void *stream) {
	NEED;
	if (stream || !in(at, bytes) || !in(from, bytes) || in(at, bytes) == in(from, bytes)) return INVALID_VALUE;
	clock_seconds += 2 * bytes / one()->within;
	return OK;
}
int cuEventCreate(void **out, unsigned flags) {
	NEED;
	if (flags || event_count == sizeof events / sizeof *events) return INVALID_VALUE;
	*out = &events[event_count++];
	return OK;
}
#define EVENT(which) ((__typeof__(events[0]) *)(which))
#define NEED_EVENT(which) if (EVENT(which) < events || EVENT(which) >= events + event_count) return INVALID_HANDLE
int cuEventRecord(void *event, void *stream) { NEED; NEED_EVENT(event); if (stream) return INVALID_VALUE; EVENT(event)->at = clock_seconds, EVENT(event)->recorded = 1; return OK; }
int cuEventSynchronize(void *event) { NEED; NEED_EVENT(event); return EVENT(event)->recorded ? OK : INVALID_HANDLE; }
int cuEventElapsedTime(float *out, void *from, void *to) {
	NEED;
	NEED_EVENT(from);
	NEED_EVENT(to);
	if (!EVENT(from)->recorded || !EVENT(to)->recorded) return NOT_READY;
	*out = (EVENT(to)->at - EVENT(from)->at) * 1e3;
	return OK;
}
int cuModuleLoadData(void **out, const void *image) {
	NEED;
	const char *text = image, *target = strstr(text, "\n.target sm_"), *version = strstr(text, "\n.version ");
	int major, minor;
	if (!target || !version || !strstr(text, "\n.address_size 64") || sscanf(version, "\n.version %d.%d", &major, &minor) != 2) return INVALID_PTX;
	if (atoi(target + strlen("\n.target sm_")) > 10 * one()->cc_major + one()->cc_minor) return NO_BINARY;
	module.text = text, module.products = 0;
	const char *product = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32";
	for (const char *at = text; (at = strstr(at, product)); at++) module.products++;
	*out = &module;
	return OK;
}
int cuModuleGetFunction(void **out, void *which, const char *name) {
	NEED;
	if (which != &module || !module.text) return INVALID_HANDLE;
	for (int i = 0; i < KERNELS; i++) {
		const char *end = entries[i] + strlen(".entry ");
		if (strncmp(end, name, strlen(name)) || end[strlen(name)] != '(') continue;
		*out = (void *)entries[i];
		return strstr(module.text, entries[i]) ? OK : NOT_FOUND;
	}
	return NOT_FOUND;
}
static int fill(void **arguments) {
	u64 words = *(u64 *)arguments[1];
	piece *found = in(*(u64 *)arguments[0], words * 4);
	if (!found || found->at != *(u64 *)arguments[0]) return INVALID_VALUE;
	found->salt = *(unsigned *)arguments[2], found->sums = 0;
	clock_seconds += words * 4 / one()->within;
	return OK;
}
static int wrong(void **arguments) {
	piece *found = in(*(u64 *)arguments[0], *(u64 *)arguments[1] * 4), *count = in(*(u64 *)arguments[3], 4);
	if (!found || !count || found == count) return INVALID_VALUE;
	count->value += found->salt != *(unsigned *)arguments[2] || one()->memfault;
	clock_seconds += *(u64 *)arguments[1] * 4 / one()->within;
	return OK;
}
static int rate(void **arguments, size_t threads) {
	u64 sums = *(u64 *)arguments[0];
	unsigned rounds = *(unsigned *)arguments[1];
	piece *found = in(sums, threads * 4);
	if (!found || found->at != sums || !rounds) return INVALID_VALUE;
	found->sum = 8.0 * 16 * module.products * rounds, found->sums = threads, launches++;
	clock_seconds += 2.0 * 16 * 16 * 16 * module.products * rounds * threads / 32 / one()->half;
	return OK;
}
int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
	NEED;
	if (!x || y != 1 || z != 1 || !bx || bx > 1024 || bx % 32 || by != 1 || bz != 1 || shared || stream || !arguments || extra) return INVALID_VALUE;
	if (kernel == entries[FILL]) return fill(arguments);
	if (kernel == entries[WRONG]) return wrong(arguments);
	if (kernel != entries[RATE]) return INVALID_HANDLE;
	if (one()->cucrash) abort();
	return rate(arguments, (size_t)x * bx);
}
