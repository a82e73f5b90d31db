/* A libnvidia-ml.so.1 that plays a machine, and with -DSMI an nvidia-smi: for tests on machines without a GPU.
 *
 * It has the functions of NVML that nvidia-ml-py asks for this project, and those that `nvidia-ctk cdi generate` asks. The machine is machine.h's.
 */
#include "machine.h"

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9 };
static int users;
static slice *part; /* of the handle that was asked last, 0 for a whole GPU */

/* A handle is the index plus one, so that it stays good while the file changes; in the next byte a slice's. */
static int find(void *handle, gpu **one) {
	if (!users) return UNINITIALIZED;
	look();
	long index = ((long)handle & 0xff) - 1, which = ((long)handle >> 8) - 1;
	if (index < 0 || index >= now.gpus) return INVALID_ARGUMENT;
	*one = &now.gpu[index];
	if (which >= (*one)->slices) return NOT_FOUND;
	part = which < 0 ? 0 : &(*one)->slice[which];
	return (*one)->lost;
}
#define ASK gpu *one; int code = find(device, &one); if (code) return code
#define GIVE(value, type) do { if ((value) == NOT_SUPPORTED_HERE) return NOT_SUPPORTED; *out = (type)(value); return OK; } while (0)
static int give_text(char *out, unsigned size, const char *text) {
	if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
	strcpy(out, text);
	return OK;
}

int nvmlInitWithFlags(unsigned flags) {
	(void)flags;
	look();
	if (now.absent) return DRIVER_NOT_LOADED;
	if (!now.init) users++;
	return now.init;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { if (!users) return UNINITIALIZED; users--; look(); return now.shutdown; }
const char *nvmlErrorString(int code) {
	static const struct { int code; const char *text; } known[] = {
		{0, "Success"}, {1, "Uninitialized"}, {2, "Invalid Argument"}, {3, "Not Supported"}, {4, "Insufficient Permissions"},
		{6, "Not Found"}, {7, "Insufficient Size"}, {9, "Driver Not Loaded"}, {10, "Timeout"}, {14, "Corrupted infoROM"},
		{15, "GPU is lost"}, {16, "GPU requires restart"}, {17, "The operating system has blocked the request."},
		{18, "Driver/library version mismatch"}};
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++) if (known[i].code == code) return known[i].text;
	return "Unknown Error";
}
int nvmlSystemGetDriverVersion(char *out, unsigned size) { look(); return now.sysdriver ? now.sysdriver : give_text(out, size, now.driver); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { return give_text(out, size, "12.570.133.20"); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { look(); if (now.syscuda) return now.syscuda; *out = now.cuda; return OK; }
int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }
int nvmlDeviceGetCount_v2(unsigned *out) { if (!users) return UNINITIALIZED; look(); if (now.count) return now.count; *out = now.gpus; return OK; }
static int give_handle(int i, void **device) { if (now.gpu[i].handle) return now.gpu[i].handle; *device = (void *)(long)(i + 1); return OK; }
static void *slice_handle(long i, long j) { return (void *)((i + 1) | ((j + 1) << 8)); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) {
	if (!users) return UNINITIALIZED;
	look();
	return i < (unsigned)now.gpus ? give_handle(i, device) : INVALID_ARGUMENT;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
	if (!users) return UNINITIALIZED;
	look();
	for (int i = 0; i < now.gpus; i++) {
		if (!strcmp(uuid, now.gpu[i].uuid)) return give_handle(i, device);
		for (int j = 0; j < now.gpu[i].slices; j++)
			if (!strcmp(uuid, now.gpu[i].slice[j].uuid)) { *device = slice_handle(i, j); return OK; }
	}
	return NOT_FOUND;
}
int nvmlDeviceGetName(void *device, char *out, unsigned size) {
	ASK;
	char text[160];
	snprintf(text, sizeof text, part ? "%s MIG %s" : "%s", one->name, part ? part->profile : "");
	return give_text(out, size, text);
}
int nvmlDeviceGetUUID(void *device, char *out, unsigned size) { ASK; return give_text(out, size, part ? part->uuid : one->uuid); }
int nvmlDeviceGetIndex(void *device, unsigned *out) { ASK; *out = part ? part - one->slice : one->index; return OK; }
int nvmlDeviceGetMinorNumber(void *device, unsigned *out) { ASK; *out = one->minor; return OK; }
int nvmlDeviceGetMemoryInfo(void *device, u64 *out) { ASK; if (one->memory) return one->memory; if (part) { out[0] = out[1] = part->total; out[2] = 0; return OK; } out[0] = one->total; out[1] = one->total - one->used; out[2] = one->used; return OK; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) { ASK; *major = one->cc_major; *minor = one->cc_minor; return OK; }
int nvmlDeviceGetMigMode(void *device, unsigned *out, unsigned *pending) { ASK; *pending = one->mig > 0; GIVE(one->mig, unsigned); }
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, u64 *out) {
	(void)counter;
	ASK;
	if (kind == 0 && one->uncorrected != NOT_SUPPORTED_HERE) { *out = 0; return OK; }
	GIVE(one->uncorrected, u64);
}
int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	ASK;
	if (one->rows_unsupported) return NOT_SUPPORTED;
	*corrected = one->rows[0]; *uncorrected = one->rows[1]; *pending = one->rows[2]; *failed = one->rows[3];
	return OK;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *out) { ASK; GIVE(one->power, unsigned); }
int nvmlDeviceGetComputeMode(void *device, unsigned *out) { ASK; *out = one->mode; return OK; }
int nvmlDeviceGetPersistenceMode(void *device, unsigned *out) { ASK; *out = one->persistence; return OK; }
typedef struct { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; } process_info;
static int give_processes(const process *list, int count, unsigned *room, process_info *out) {
	unsigned asked = *room;
	*room = count;
	if ((unsigned)count > asked || (count && !out)) return INSUFFICIENT_SIZE;
	for (int i = 0; i < count; i++) out[i] = (process_info){list[i].pid, list[i].memory, ~0u, ~0u};
	return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_info *out) {
	ASK;
	return part ? give_processes(part->compute, part->compute_count, count, out) : give_processes(one->compute, one->compute_count, count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process_info *out) { ASK; if (part) return NOT_SUPPORTED; return give_processes(one->graphics, one->graphics_count, count, out); }

/* What nvidia-ctk asks besides. */
typedef struct { char legacy[16]; unsigned domain, bus, device, pci, subsystem; char id[32]; } pci_info;
int nvmlDeviceGetPciInfo_v3(void *device, pci_info *out) {
	ASK;
	memset(out, 0, sizeof *out);
	out->bus = one->index + 1, out->pci = 0x268410de;
	snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
	snprintf(out->id, sizeof out->id, "00000000:%02X:00.0", out->bus);
	return OK;
}
int nvmlDeviceGetPciInfo_v2(void *device, pci_info *out) { return nvmlDeviceGetPciInfo_v3(device, out); }
int nvmlDeviceGetPciInfo(void *device, pci_info *out) { return nvmlDeviceGetPciInfo_v3(device, out); }
int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *out) { ASK; *out = part != 0; return OK; }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *out) { ASK; *out = one->mig == 1 ? SLICES - 1 : 0; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned i, void **out) {
	ASK;
	if (one->mig != 1 || i >= SLICES) return INVALID_ARGUMENT;
	if (i >= (unsigned)one->slices) return NOT_FOUND;
	*out = slice_handle(((long)device & 0xff) - 1, i);
	return OK;
}
int nvmlDeviceGetGpuInstanceId(void *device, unsigned *out) { ASK; if (!part) return NOT_SUPPORTED; *out = part - one->slice + 1; return OK; }
int nvmlDeviceGetComputeInstanceId(void *device, unsigned *out) { ASK; if (!part) return NOT_SUPPORTED; *out = 0; return OK; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **out) { ASK; if (!part) return INVALID_ARGUMENT; *out = (void *)((long)device & 0xff); return OK; }
/* Each slice is a GPU instance of its own with one compute instance, both of the smallest profile, whatever it is called. */
typedef struct { unsigned counts[8]; u64 megabytes; } attributes;
typedef struct { void *device; unsigned id, profile, start, size; } gpu_instance;
typedef struct { void *device, *instance; unsigned id, profile, start, size; } compute_instance;
typedef struct { unsigned id, counts[9]; u64 megabytes; } gpu_profile;
typedef struct { unsigned id, counts[8]; } compute_profile;
int nvmlDeviceGetAttributes_v2(void *device, attributes *out) { ASK; if (!part) return NOT_SUPPORTED; *out = (attributes){{0}, part->total >> 20}; return OK; }
int nvmlDeviceGetGpuInstanceById(void *device, unsigned id, void **out) { ASK; if (id - 1 >= (unsigned)one->slices) return NOT_FOUND; *out = slice_handle(((long)device & 0xff) - 1, id - 1); return OK; }
int nvmlGpuInstanceGetInfo(void *device, gpu_instance *out) { ASK; *out = (gpu_instance){0}; return OK; }
int nvmlGpuInstanceGetComputeInstanceById(void *device, unsigned id, void **out) { ASK; if (id) return NOT_FOUND; *out = device; return OK; }
int nvmlComputeInstanceGetInfo_v2(void *device, compute_instance *out) { ASK; *out = (compute_instance){0}; return OK; }
int nvmlDeviceGetGpuInstanceProfileInfo(void *device, unsigned which, gpu_profile *out) { ASK; if (which) return NOT_SUPPORTED; *out = (gpu_profile){0}; return OK; }
int nvmlGpuInstanceGetComputeInstanceProfileInfo(void *device, unsigned which, unsigned engine, compute_profile *out) { ASK; if (which || engine) return NOT_SUPPORTED; *out = (compute_profile){0}; return OK; }
int nvmlDeviceGetBrand(void *device, unsigned *out) { ASK; *out = 5; return OK; }
int nvmlDeviceGetArchitecture(void *device, unsigned *out) { ASK; *out = one->cc_major; return OK; }

#ifdef SMI
/* Say in a line what is known of each GPU, and whether its node can be opened: what a job sees of what it was lent. With
 * -L, the GPUs alone, as the real one does. */
int main(int count, char **words) {
	int list = count == 2 && !strcmp(words[1], "-L");
	int code = nvmlInit();
	if (code) { printf("NVIDIA-SMI has failed: %s\n", nvmlErrorString(code)); return code; }
	for (int i = 0; i < now.gpus; i++) {
		const gpu *one = &now.gpu[i];
		char path[64];
		snprintf(path, sizeof path, "/dev/nvidia%d", one->minor);
		FILE *node = fopen(path, "r+");
		if (one->lost) { printf("GPU %d: %s\n", i, nvmlErrorString(one->lost)); return one->lost; }
		if (list) printf("GPU %d: %s (UUID: %s)\n", i, one->name, one->uuid);
		else printf("GPU %d: %s (UUID: %s) %llu MiB driver %s %s %s\n", i, one->name, one->uuid, one->total >> 20, now.driver, path, node ? "opens" : "does not open");
		for (int j = 0; one->mig == 1 && j < one->slices; j++) printf("  MIG %s (UUID: %s)\n", one->slice[j].profile, one->slice[j].uuid);
		if (node) fclose(node);
	}
	return 0;
}
#endif
