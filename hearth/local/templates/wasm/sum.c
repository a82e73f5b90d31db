/* Add up the whole numbers of /in/numbers.txt, one a line, and write the sum to /out/sum.txt.
 *
 * Any compiler for wasm32-wasi will do; with the Python package ziglang:
 *   python -m ziglang cc -target wasm32-wasi -O2 -s -o sum.wasm sum.c
 */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    FILE *in = fopen("/in/numbers.txt", "r");
    if (!in) { perror("/in/numbers.txt"); return 2; }
    long long sum = 0;
    char line[64], *end;
    for (long at = 1; fgets(line, sizeof line, in); at++) {
        sum += strtoll(line, &end, 10);
        if (end == line || (*end != '\n' && *end != '\0')) {
            fprintf(stderr, "/in/numbers.txt: line %ld is no whole number\n", at);
            return 2;
        }
    }
    FILE *out = fopen("/out/sum.txt", "w");
    if (!out || fprintf(out, "%lld\n", sum) < 0 || fclose(out)) { perror("/out/sum.txt"); return 1; }
    printf("the sum is %lld\n", sum);
    return 0;
}
