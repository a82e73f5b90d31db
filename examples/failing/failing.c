/* A job that fails: it says why on stderr and exits with 3. The worker is paid, the job ends as failed. */
#include <stdio.h>

int main(void) {
    printf("reading the input\n");
    fprintf(stderr, "failing: the input has no rows to train on\n");
    return 3;
}
