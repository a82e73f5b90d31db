/* Count the words of one slice of a text: unit HEARTH_UNIT of HEARTH_UNITS.
 *
 * A word is a run of ASCII letters, in lower case; it belongs to the slice in which it starts, so no word is lost or
 * counted twice where slices meet. Reads /in/text.txt, writes /out/counts.tsv: word, tab, count, in byte order.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1 << 16 };

struct word { struct word *next; long count; char text[]; };

static struct word *bucket[BUCKETS];
static size_t different;

static void count_word(const char *text, size_t size) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    struct word **at = &bucket[hash % BUCKETS];
    for (struct word *w = *at; w; w = w->next)
        if (!strncmp(w->text, text, size) && !w->text[size]) { w->count++; return; }
    struct word *fresh = malloc(sizeof *fresh + size + 1);
    if (!fresh) { fprintf(stderr, "out of memory\n"); exit(1); }
    memcpy(fresh->text, text, size);
    fresh->text[size] = 0;
    fresh->count = 1;
    fresh->next = *at;
    *at = fresh;
    different++;
}

static int by_text(const void *a, const void *b) {
    return strcmp((*(struct word *const *)a)->text, (*(struct word *const *)b)->text);
}

static long number(const char *name) {
    const char *text = getenv(name);
    if (!text) { fprintf(stderr, "%s is not set\n", name); exit(2); }
    return atol(text);
}

int main(void) {
    long unit = number("HEARTH_UNIT"), units = number("HEARTH_UNITS");
    FILE *file = fopen("/in/text.txt", "rb");
    if (!file) { perror("/in/text.txt"); return 2; }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    char *text = malloc((size_t)size + 1);
    rewind(file);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) { fprintf(stderr, "cannot read the text\n"); return 2; }
    fclose(file);
    text[size] = 0;
    for (long i = 0; i < size; i++) text[i] = (char)tolower((unsigned char)text[i]);

    long at = (long)((long long)size * unit / units), end = (long)((long long)size * (unit + 1) / units), words = 0;
    if (at > 0) while (at < end && isalpha((unsigned char)text[at - 1]) && isalpha((unsigned char)text[at])) at++;
    while (at < end) {
        long start = at;
        while (isalpha((unsigned char)text[at])) at++;
        if (at > start) { count_word(text + start, (size_t)(at - start)); words++; }
        else at++;
    }

    struct word **sorted = malloc((different ? different : 1) * sizeof *sorted);
    size_t n = 0;
    for (int b = 0; b < BUCKETS; b++) for (struct word *w = bucket[b]; w; w = w->next) sorted[n++] = w;
    qsort(sorted, n, sizeof *sorted, by_text);
    FILE *out = fopen("/out/counts.tsv", "w");
    if (!out) { perror("/out/counts.tsv"); return 1; }
    for (size_t i = 0; i < n; i++) fprintf(out, "%s\t%ld\n", sorted[i]->text, sorted[i]->count);
    if (fclose(out)) { perror("/out/counts.tsv"); return 1; }
    printf("unit %ld of %ld: %ld words, %zu different\n", unit, units, words, different);
    return 0;
}
