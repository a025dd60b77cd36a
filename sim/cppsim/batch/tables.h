// What the tables of levels consist of.

// Of a gate, from the lowest bit on: eight answers, and the numbers of the three words that it reads
// and of the one that it writes, of `NUMBER_BITS`. It takes no more than it must: all are read in every
// cycle.
struct Gate {
  uint64_t packed[(8 + 4 * NUMBER_BITS + 63) / 64];
};

// Where the gates and calls of a level begin, and those of the one before it end. Levels that few
// gates have in a row are done by a `crew` of so many threads, up to the level `behind` them; 0: by all.
struct LevelEnds {
  uint32_t gates, calls, crew, behind;
};

// `function` 0 reads a row, others are those of `arithmetic`. It takes `taken` words whose numbers are
// those from `words` on, and gives `width` words, of the numbers that follow.
struct LevelCall {
  uint32_t function, words, taken, width, depth, count, element;
  uint64_t offset;
};

// The words of the address, of the data and of the enables, or of a `single` one, are those of the
// numbers from `words` on. Writes of one memory have rounds of their own.
struct LevelStore {
  uint32_t words, address, width, depth, count, element, round, single;
  uint64_t offset;
};

// All but the gates: little enough for shared memory. The last of each is of no use.
struct Tables {
  LevelCall calls[CALL_COUNT + 1];
  LevelStore stores[STORE_COUNT + 1];
  LevelEnds levels[LEVEL_COUNT + 1];
  uint32_t words[WORD_COUNT + 1];
};
static_assert(sizeof(Tables) == TABLES_BYTES, "as much as there is memory for");
