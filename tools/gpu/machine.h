/* A machine with GPUs that libraries of this folder play, for tests on machines without one.
 *
 * The machine is a text file, read anew at every call, so that a test changes it while a job runs. It lies at
 * $PLAYED_GPU; without that file the driver is not loaded. Where $PLAYED_GPU_NODES is set, as in a container, only
 * GPUs whose /dev/nvidia<minor> is there are shown.
 *
 * Lines are key=value; CODE is one of NVML's, 0 for "works". Of the machine, before the first "gpu=":
 *   driver=TEXT  cuda=12080  init=CODE (18: driver and library differ)  count=CODE  sysdriver=CODE  syscuda=CODE
 *   shutdown=CODE  cuinit=CODE (of CUDA)  cuhang=1 (CUDA begins and never ends)
 *   hang=1 (no question returns any more)  crash=1 (each ends who asks)
 * Of each GPU, whose "gpu=UUID" begins it ("ns": not supported on this GPU):
 *   name=TEXT  total=BYTES  used=BYTES  cc=8.9  minor=N  mig=0|1|ns  uncorrected=N|ns  rows=A,B,C,D|ns
 *   power=MILLIWATT|ns  mode=0..3  persistence=0|1
 *   proc=PID:BYTES (repeatable)  gproc=PID:BYTES (graphics; repeatable)
 *   handle=CODE (it was lost before anyone looked)  lost=CODE (every question to it fails; 15: GPU is lost)
 *   memory=CODE (the question for memory alone)
 *   processors=N  half=OPERATIONS_PER_SECOND  within=BYTES_PER_SECOND  from_host=BYTES_PER_SECOND
 *   integrated=1  spill=BYTES (of the host's memory, which it hands out as its own)  cucrash=1 (a product ends who asks)
 *   memfault=1 (memory does not keep what is written)  sumfault=1 (a product is wrong)  flaky=1 (the first one is)
 *   slice=UUID:PROFILE:BYTES (a MIG slice, "MIG-...:1g.5gb:5100273664"; repeatable)  sproc=PID:BYTES (of the last slice)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUS 16
#define PROCESSES 32
#define SLICES 8
#define NOT_SUPPORTED_HERE (-1LL)

typedef unsigned long long u64;
typedef struct { unsigned pid; u64 memory; } process;
typedef struct {
	char uuid[96], profile[32];
	u64 total;
	int compute_count;
	process compute[PROCESSES];
} slice;
typedef struct {
	char uuid[96], name[96];
	u64 total, used;
	int slices;
	slice slice[SLICES];
	int cc_major, cc_minor, handle, lost, memory, processors, integrated, memfault, sumfault, flaky, cucrash, mode, persistence, index, minor;
	double half, within, from_host;
	long long mig, uncorrected, power;
	u64 spill;
	int rows[4], rows_unsupported;
	int compute_count, graphics_count;
	process compute[PROCESSES], graphics[PROCESSES];
} gpu;
typedef struct {
	char driver[80];
	int absent, cuda, init, cuinit, cuhang, count, sysdriver, syscuda, shutdown, hang, crash, gpus;
	gpu gpu[GPUS];
} machine;
static machine now;

static long long number(const char *text) { return strcmp(text, "ns") ? strtoll(text, 0, 0) : NOT_SUPPORTED_HERE; }

static void add_process(process *list, int *count, const char *text) {
	if (*count == PROCESSES) return;
	const char *colon = strchr(text, ':');
	list[*count].pid = strtoul(text, 0, 10);
	list[(*count)++].memory = colon ? strtoull(colon + 1, 0, 10) : 0;
}

static void begin_gpu(const char *uuid) {
	if (now.gpus == GPUS) return;
	gpu *one = &now.gpu[now.gpus];
	memset(one, 0, sizeof *one);
	snprintf(one->uuid, sizeof one->uuid, "%s", uuid);
	strcpy(one->name, "NVIDIA GeForce RTX 4090");
	one->total = 25757220864ULL;
	one->cc_major = 8, one->cc_minor = 9, one->power = 450000;
	one->processors = 128, one->half = 150e12, one->within = 950e9, one->from_host = 25e9;
	one->mig = one->uncorrected = NOT_SUPPORTED_HERE, one->rows_unsupported = 1;
	one->index = one->minor = now.gpus++;
}

/* A misspelt fault must not play a machine that is well. */
static void unknown(const char *key) {
	fprintf(stderr, "the played machine has no %s\n", key);
	abort();
}

#define IS(name) (!strcmp(key, name))
static void set(const char *key, const char *value) {
	gpu *one = now.gpus ? &now.gpu[now.gpus - 1] : 0;
	if IS("gpu") begin_gpu(value);
	else if IS("driver") snprintf(now.driver, sizeof now.driver, "%s", value);
	else if IS("cuda") now.cuda = number(value);
	else if IS("init") now.init = number(value);
	else if IS("cuinit") now.cuinit = number(value);
	else if IS("cuhang") now.cuhang = number(value);
	else if IS("count") now.count = number(value);
	else if IS("sysdriver") now.sysdriver = number(value);
	else if IS("syscuda") now.syscuda = number(value);
	else if IS("shutdown") now.shutdown = number(value);
	else if IS("hang") now.hang = number(value);
	else if IS("crash") now.crash = number(value);
	else if (!one) unknown(key);
	else if IS("name") snprintf(one->name, sizeof one->name, "%s", value);
	else if IS("total") one->total = strtoull(value, 0, 10);
	else if IS("used") one->used = strtoull(value, 0, 10);
	else if IS("cc") sscanf(value, "%d.%d", &one->cc_major, &one->cc_minor);
	else if IS("processors") one->processors = number(value);
	else if IS("half") one->half = strtod(value, 0);
	else if IS("within") one->within = strtod(value, 0);
	else if IS("from_host") one->from_host = strtod(value, 0);
	else if IS("memfault") one->memfault = number(value);
	else if IS("sumfault") one->sumfault = number(value);
	else if IS("flaky") one->flaky = number(value);
	else if IS("cucrash") one->cucrash = number(value);
	else if IS("integrated") one->integrated = number(value);
	else if IS("spill") one->spill = strtoull(value, 0, 10);
	else if IS("minor") one->minor = number(value);
	else if IS("mig") one->mig = number(value);
	else if IS("uncorrected") one->uncorrected = number(value);
	else if IS("rows") one->rows_unsupported = sscanf(value, "%d,%d,%d,%d", one->rows, one->rows + 1, one->rows + 2, one->rows + 3) != 4;
	else if IS("power") one->power = number(value);
	else if IS("mode") one->mode = number(value);
	else if IS("persistence") one->persistence = number(value);
	else if IS("proc") add_process(one->compute, &one->compute_count, value);
	else if IS("gproc") add_process(one->graphics, &one->graphics_count, value);
	else if IS("handle") one->handle = number(value);
	else if IS("lost") one->lost = number(value);
	else if IS("memory") one->memory = number(value);
	else if IS("slice") {
		if (one->slices == SLICES) return;
		slice *made = &one->slice[one->slices++];
		memset(made, 0, sizeof *made);
		sscanf(value, "%95[^:]:%31[^:]:%llu", made->uuid, made->profile, &made->total);
	}
	else if IS("sproc") {
		if (one->slices) add_process(one->slice[one->slices - 1].compute, &one->slice[one->slices - 1].compute_count, value);
	}
	else unknown(key);
}

static int has_node(const gpu *one) {
	char path[64];
	snprintf(path, sizeof path, "/dev/nvidia%d", one->minor);
	return access(path, F_OK) == 0;
}

static void look(void) {
	memset(&now, 0, sizeof now);
	strcpy(now.driver, "570.133.20");
	now.cuda = 12080, now.absent = 1;
	const char *path = getenv("PLAYED_GPU");
	FILE *file = path ? fopen(path, "r") : 0;
	if (!file) return;
	now.absent = 0;
	char line[512];
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\r\n")] = 0;
		char *equals = strchr(line, '=');
		if (!equals) continue;
		*equals = 0;
		set(line, equals + 1);
	}
	fclose(file);
	if (getenv("PLAYED_GPU_NODES")) {
		int kept = 0;
		for (int i = 0; i < now.gpus; i++)
			if (has_node(&now.gpu[i])) now.gpu[kept] = now.gpu[i], now.gpu[kept].index = kept, kept++;
		now.gpus = kept;
	}
	if (now.crash) abort();
	while (now.hang) pause();
}
