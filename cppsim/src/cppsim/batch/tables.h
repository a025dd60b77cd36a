// The entries of the tables of levels.

// A gate, from the lowest bit: its truth table, and the numbers, of `NUMBER_BITS`, of the three words
// that it reads and of the word that it writes. It is packed because every cycle reads all gates.
struct Gate {
  uint64_t packed[(8 + 4 * NUMBER_BITS + 63) / 64];
};

// The first gate and the first call of a level.
struct LevelEnds {
  uint32_t gates, calls;
};

// `function` 0 reads a row, others are those of `arithmetic`. The numbers of its `taken` operand words
// begin at `words`; the numbers of its `width` result words follow.
struct LevelCall {
  uint32_t function, words, taken, width, depth, count, element;
  uint64_t offset;
};

// A write of a memory. The numbers of the words of address, data, and enables or a `single` enable
// begin at `words`. The writes of one memory have different rounds.
struct LevelStore {
  uint32_t words, address, width, depth, count, element, round, single;
  uint64_t offset;
};

// All tables but the gates, with the numbers of words; they fit into shared memory. The last entry of
// each is unused; two levels follow the last one, which have no gates.
struct Tables {
  LevelCall calls[CALL_COUNT + 1];
  LevelStore stores[STORE_COUNT + 1];
  LevelEnds levels[LEVEL_COUNT + 2];
  Number words[WORD_COUNT + 1];
};
static_assert(sizeof(Tables) == TABLES_BYTES, "as much as there is memory for");
