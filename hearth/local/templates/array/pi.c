/* One slice of the integral of 4 / (1 + x * x) from 0 to 1, which is pi: unit HEARTH_UNIT of HEARTH_UNITS.
 *
 * Writes its part of the sum to /out/part.txt; reduce.py adds the parts up. Any compiler for wasm32-wasi will do; with
 * the Python package ziglang:
 *   python -m ziglang cc -target wasm32-wasi -O2 -s -o pi.wasm pi.c
 */
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 10000000 };

int main(void) {
    const char *unit_text = getenv("HEARTH_UNIT"), *units_text = getenv("HEARTH_UNITS");
    if (!unit_text || !units_text) { fprintf(stderr, "HEARTH_UNIT and HEARTH_UNITS are not set\n"); return 2; }
    long long unit = atoll(unit_text), units = atoll(units_text);
    long long begin = POINTS * unit / units, end = POINTS * (unit + 1) / units;
    double sum = 0;
    for (long long i = begin; i < end; i++) {
        double x = ((double)i + 0.5) / POINTS;
        sum += 4 / (1 + x * x);
    }
    FILE *out = fopen("/out/part.txt", "w");
    if (!out || fprintf(out, "%.17g\n", sum / POINTS) < 0 || fclose(out)) { perror("/out/part.txt"); return 1; }
    printf("points %lld to %lld of %d\n", begin, end, POINTS);
    return 0;
}
