// What the tables of levels consist of.

struct LevelEnds {
  uint32_t gates, calls, results;
};

// `function` 0 reads a row, others are those of `arithmetic`. A lane's result is staged in as many
// words as its `width` needs.
struct LevelCall {
  uint32_t function, taken, address, width, depth, count, element, stage;
  uint64_t offset;
};

struct ResultBit {
  uint32_t stage, bit, word;
};

struct LevelStore {
  uint32_t first, address, width, depth, count, element, single, round;
  uint64_t offset;
};
