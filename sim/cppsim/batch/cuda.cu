// The entry for a GPU, behind batch.h: an instance a thread, and the same word of all side by side.

extern "C" __global__ void batch_run(uint32_t *state, uint8_t *rows,
                                     const batch::Instruction *program, uint64_t count,
                                     const uint64_t *input, uint64_t *output, uint64_t instances,
                                     uint32_t fresh) {
  const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= instances) return;
  const batch::Share share = {state, rows, input, output, instances, i, fresh != 0};
  batch::run(share, program, count);
}
