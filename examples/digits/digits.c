/* Train a small neural network on handwritten digits and measure it on images it has not seen.
 *
 * Reads /in/digits.csv: 64 pixels of 0..16 and the digit, one image per line. Every fifth image is held out. One hidden
 * layer of 32 rectified units, softmax, plain stochastic gradient descent. The order of the images comes from a fixed
 * generator and the C library is compiled into the module, so every machine computes the same bits.
 * Writes /out/weights.bin (little-endian float32: w1[32][64] b1[32] w2[10][32] b2[10]) and /out/accuracy.json.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 64, HIDDEN = 32, DIGITS = 10, MAX_IMAGES = 4096, HELD_OUT_EVERY = 5 };

static float image[MAX_IMAGES][PIXELS];
static int label[MAX_IMAGES];
static int images;

static struct {
    float w1[HIDDEN][PIXELS], b1[HIDDEN], w2[DIGITS][HIDDEN], b2[DIGITS];
} net;

static uint64_t state = 20260101;

static uint32_t next_random(void) { /* splitmix64, upper half */
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static float small_random(float scale) { return scale * ((float)next_random() / 2147483648.0f - 1.0f); }

static void load(const char *path) {
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) { perror(path); exit(2); }
    while (fgets(line, sizeof line, file)) {
        char *at = line;
        if (images == MAX_IMAGES) { fprintf(stderr, "%s: more than %d images\n", path, MAX_IMAGES); exit(2); }
        for (int i = 0; i <= PIXELS; i++) {
            char *end;
            long value = strtol(at, &end, 10);
            if (end == at || value < 0 || value > 16 || *end != (i < PIXELS ? ',' : '\n')) {
                fprintf(stderr, "%s: line %d, column %d is not a value of 0..16\n", path, images + 1, i + 1);
                exit(2);
            }
            if (i < PIXELS) image[images][i] = (float)value / 16.0f;
            else label[images] = (int)value;
            at = end + 1;
        }
        images++;
    }
    fclose(file);
    if (images < 2 * HELD_OUT_EVERY) { fprintf(stderr, "%s: only %d images\n", path, images); exit(2); }
}

static void forward(const float *pixels, float *hidden, float *out) {
    for (int h = 0; h < HIDDEN; h++) {
        float sum = net.b1[h];
        for (int i = 0; i < PIXELS; i++) sum += net.w1[h][i] * pixels[i];
        hidden[h] = sum > 0 ? sum : 0;
    }
    float top = -INFINITY, total = 0;
    for (int d = 0; d < DIGITS; d++) {
        out[d] = net.b2[d];
        for (int h = 0; h < HIDDEN; h++) out[d] += net.w2[d][h] * hidden[h];
        if (out[d] > top) top = out[d];
    }
    for (int d = 0; d < DIGITS; d++) total += out[d] = expf(out[d] - top);
    for (int d = 0; d < DIGITS; d++) out[d] /= total;
}

static float learn(int n, float rate) {
    float hidden[HIDDEN], out[DIGITS], back[HIDDEN] = {0};
    forward(image[n], hidden, out);
    float loss = -logf(out[label[n]] > 1e-12f ? out[label[n]] : 1e-12f);
    for (int d = 0; d < DIGITS; d++) {
        float error = out[d] - (d == label[n] ? 1.0f : 0.0f);
        for (int h = 0; h < HIDDEN; h++) {
            back[h] += error * net.w2[d][h];
            net.w2[d][h] -= rate * error * hidden[h];
        }
        net.b2[d] -= rate * error;
    }
    for (int h = 0; h < HIDDEN; h++) {
        if (hidden[h] <= 0) continue;
        for (int i = 0; i < PIXELS; i++) net.w1[h][i] -= rate * back[h] * image[n][i];
        net.b1[h] -= rate * back[h];
    }
    return loss;
}

static int right(int n) {
    float hidden[HIDDEN], out[DIGITS];
    int best = 0;
    forward(image[n], hidden, out);
    for (int d = 1; d < DIGITS; d++) if (out[d] > out[best]) best = d;
    return best == label[n];
}

int main(int argc, char **argv) {
    int epochs = argc == 3 && !strcmp(argv[1], "--epochs") ? atoi(argv[2]) : 20;
    if (epochs < 1 || (argc != 1 && argc != 3)) { fprintf(stderr, "usage: digits [--epochs N]\n"); return 2; }
    static int order[MAX_IMAGES];
    int training = 0, held_out = 0, correct = 0, learnt = 0;

    load("/in/digits.csv");
    for (int h = 0; h < HIDDEN; h++) for (int i = 0; i < PIXELS; i++) net.w1[h][i] = small_random(0.2f);
    for (int d = 0; d < DIGITS; d++) for (int h = 0; h < HIDDEN; h++) net.w2[d][h] = small_random(0.2f);
    for (int n = 0; n < images; n++) if (n % HELD_OUT_EVERY) order[training++] = n;

    for (int epoch = 1; epoch <= epochs; epoch++) {
        double loss = 0;
        for (int n = training - 1; n > 0; n--) {
            int other = (int)(next_random() % (uint32_t)(n + 1)), kept = order[n];
            order[n] = order[other];
            order[other] = kept;
        }
        for (int n = 0; n < training; n++) loss += learn(order[n], 0.05f / (1.0f + 0.1f * (float)epoch));
        printf("epoch %d of %d, loss %.4f\n", epoch, epochs, loss / training);
    }
    for (int n = 0; n < images; n++) {
        if (n % HELD_OUT_EVERY) learnt += right(n);
        else { held_out++; correct += right(n); }
    }

    FILE *weights = fopen("/out/weights.bin", "wb"), *report = fopen("/out/accuracy.json", "w");
    if (!weights || !report) { perror("/out"); return 1; }
    fwrite(&net, sizeof net, 1, weights);
    fprintf(report, "{\"accuracy\":\"%.4f\",\"correct\":%d,\"epochs\":%d,\"held_out\":%d,\"training_accuracy\":\"%.4f\","
            "\"training_images\":%d}\n", (double)correct / held_out, correct, epochs, held_out,
            (double)learnt / training, training);
    if (fclose(weights) || fclose(report)) { perror("/out"); return 1; }
    printf("%d of %d held-out digits read correctly\n", correct, held_out);
    return 0;
}
