/* A long count that loses little when its worker is lost: `count STEPS ROUNDS`, default 60 steps of 150,000,000 rounds.

   After each step it writes all that it knows to a draft, and renames that into /out/checkpoints: so a file there is
   always complete. When it starts, it goes on from the newest file that it finds there. /out/result.json says how many
   steps each attempt did: one number where nothing was lost. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/out/checkpoints"
#define DRAFT FOLDER "/.draft" /* names with a dot are not part of a checkpoint */
#define MOST 9                 /* attempts: a unit has eight at most */

struct state {
    unsigned step;
    uint64_t value;
    unsigned attempts;
    unsigned done[MOST]; /* steps of each attempt */
};

static int fail(const char *what) {
    perror(what);
    return 1;
}

static int read_state(const char *path, struct state *state) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    struct state found = {0};
    int good = fscanf(file, "%u %" SCNx64 " %u", &found.step, &found.value, &found.attempts) == 3;
    good = good && found.attempts < MOST;
    for (unsigned i = 0; good && i < found.attempts; i++) good = fscanf(file, "%u", &found.done[i]) == 1;
    fclose(file);
    if (good && found.step > state->step) *state = found;
    return good;
}

static void find_newest(struct state *state) {
    DIR *folder = opendir(FOLDER);
    if (folder == NULL) return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, FOLDER "/%s", entry->d_name);
        read_state(path, state);
    }
    closedir(folder);
}

static int write_state(const struct state *state) {
    char path[64], before[64];
    FILE *file = fopen(DRAFT, "w");
    if (file == NULL) return 0;
    fprintf(file, "%u %016" PRIx64 " %u", state->step, state->value, state->attempts);
    for (unsigned i = 0; i < state->attempts; i++) fprintf(file, " %u", state->done[i]);
    fprintf(file, "\n");
    if (fclose(file) != 0) return 0;
    snprintf(path, sizeof path, FOLDER "/step-%06u", state->step);
    snprintf(before, sizeof before, FOLDER "/step-%06u", state->step - 1);
    if (rename(DRAFT, path) != 0) return 0;
    unlink(before); /* there is none before the first */
    return 1;
}

int main(int argc, char **argv) {
    unsigned steps = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 60;
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 150000000;
    struct state state = {0};
    mkdir(FOLDER, 0755); /* it is there already where there is something to go on from */
    find_newest(&state);
    printf("begins at step %u of %u\n", state.step, steps);
    fflush(stdout);
    unsigned *done = &state.done[state.attempts++];
    while (state.step < steps) {
        for (unsigned long i = 0; i < rounds; i++) state.value = state.value * 6364136223846793005u + 1442695040888963407u;
        state.step++;
        (*done)++;
        if (!write_state(&state)) return fail("checkpoint");
    }
    FILE *file = fopen("/out/result.json", "w");
    if (file == NULL) return fail("/out/result.json");
    fprintf(file, "{\"steps\": %u, \"value\": \"%016" PRIx64 "\", \"steps_of_attempts\": [", state.step, state.value);
    for (unsigned i = 0; i < state.attempts; i++) fprintf(file, "%s%u", i ? ", " : "", state.done[i]);
    fprintf(file, "]}\n");
    return fclose(file) == 0 ? 0 : fail("/out/result.json");
}
