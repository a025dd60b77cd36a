// The messages of a step: numbers, each followed by the words of its values.

struct Messages {
  uint64_t *words;
  size_t count, room;

  void add(size_t number, const uint64_t *values, size_t size) {
    if (count + size + 1 > room) {
      room = 2 * (count + size + 1);
      words = static_cast<uint64_t *>(__builtin_realloc(words, room * sizeof *words));
      if (!words) __builtin_abort();
    }
    words[count++] = number;
    __builtin_memcpy(words + count, values, size * sizeof *values);
    count += size;
  }
};
