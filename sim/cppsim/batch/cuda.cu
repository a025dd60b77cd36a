// The entry for a GPU, behind batch.h: a tile a thread, and the same word of all instances beside
// each other.

extern "C" __global__ void batch_run(W *words, uint8_t *rows, const Instruction *program,
                                     uint64_t count, const uint64_t *input, uint64_t *output,
                                     uint64_t instances, uint32_t fresh) {
  const uint64_t tile = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x, i = tile * LANES;
  if (i >= instances) return;
  const uint64_t left = instances - i;
  const Share share = {words + tile / BESIDE * BESIDE * TILE_WORDS + tile % BESIDE,
                       rows,
                       input + i,
                       output + i,
                       1,
                       instances,
                       1,
                       instances,
                       instances,
                       i,
                       uint32_t(left < LANES ? left : LANES),
                       fresh != 0};
  Run(share, program, count).run();
}
