// Waveforms as text of a VCD file (IEEE 1364-2005, clause 18): what has changed since the sample
// before. Never moves an instance on. Files, headers and values that show as words are Python's.

#include "instance.h"

#include <stddef.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Time = unsigned __int128; // in femtoseconds: 64 bits of them are five hours

constexpr int DONE = 1;            // Python's answer; any other answer: it drops an exception
constexpr int BACKWARDS = 2;       // what fails in place of Python
constexpr size_t WORD = 64;
constexpr size_t BLOCK = 32;       // words that are compared at once
constexpr size_t ENOUGH = 1 << 20; // bytes of text for which to ask the file
constexpr size_t KNOWN = 1 << 12;  // values of a variable whose text is cached

// --- what Python hands over ----------------------------------------------------------------------

// Memory to be sampled. All areas are one row of words, in which each begins with word `first`.
struct Area {
  const char *content;
  size_t size; // in bytes
  size_t first;
};

enum Kind : uint32_t { DIGITS, WORDS, FLEETING_WORDS };

struct Variable {
  char ending[8]; // what stands behind the digits in its lines
  uint32_t ending_size, width, kind;
};

// `width` bits of a variable from its bit `low` on are in a word, `shift` bits up.
struct Part {
  uint32_t variable, word, shift, low, width;
};

// Each returns 0, or another number for an error.
struct Callbacks {
  int (*write)(const char *text, size_t size);
  int (*render)(uint32_t variable, const uint64_t *value); // is to call waves_line
  int (*held)();        // whether this thread holds Python, which code that it calls may let go
  int (*interrupted)(); // whether a signal has raised, which whoever called from Python will find
};

// --- digits --------------------------------------------------------------------------------------

struct Table {
  char digits[256][8];

  constexpr Table() : digits{} {
    for (int byte = 0; byte < 256; byte++)
      for (int index = 0; index < 8; index++) digits[byte][index] = '0' + (byte >> (7 - index) & 1);
  }
};

constexpr Table TABLE;

// Writes the low `count` bits, 1 to 64, and up to 7 bytes of no meaning behind them.
char *write_bits(char *to, uint64_t value, size_t count) {
  value <<= WORD - count;
  for (size_t done = 0; done < count; done += 8, value <<= 8)
    memcpy(to + done, TABLE.digits[value >> 56], 8);
  return to + count;
}

char *write_time(char *to, Time time) {
  char digits[40];
  size_t first = sizeof digits;
  // Most fit in a word, which is divided faster.
  for (; time >> WORD; time /= 10) digits[--first] = char('0' + time % 10);
  uint64_t rest = uint64_t(time);
  do digits[--first] = char('0' + rest % 10);
  while (rest /= 10);
  memcpy(to, digits + first, sizeof digits - first);
  return to + sizeof digits - first;
}

size_t significant(uint64_t value) { return WORD - __builtin_clzll(value | 1); }

uint64_t mask(size_t width) { return ~uint64_t(0) >> (WORD - width); }

// --- text ----------------------------------------------------------------------------------------

// What this file needs of std::vector, for plain data: to compile the containers of the library took
// 0.6 of 0.8 s.
template <typename Element> class Array {
public:
  Array() = default;
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { __builtin_free(_content); }

  size_t size() const { return _size; }
  Element *begin() { return _content; }
  Element *end() { return _content + _size; }
  Element &operator[](size_t number) { return _content[number]; }

  // New elements are 0.
  void resize(size_t size) {
    if (size > _room) {
      _room = 2 * size;
      void *const content = __builtin_realloc(_content, _room * sizeof(Element));
      if (!content) __builtin_abort();
      _content = static_cast<Element *>(content);
    }
    if (size > _size) memset(_content + _size, 0, (size - _size) * sizeof(Element));
    _size = size;
  }

  void take(const Element *from, size_t size) {
    resize(size);
    if (size) memcpy(_content, from, size * sizeof(Element));
  }

  void add(Element element) {
    resize(_size + 1);
    _content[_size - 1] = element;
  }

private:
  Element *_content = nullptr;
  size_t _size = 0, _room = 0;
};

// Lines for the file. What is begun can be taken back.
class Text {
public:
  size_t count = 0;

  const char *content() { return _content.begin(); }

  // Room at the end for up to `size` bytes.
  char *more(size_t size) {
    if (count + size > _content.size()) _content.resize(2 * (count + size));
    return _content.begin() + count;
  }

  void ends(const char *to) { count = to - _content.begin(); }

  void add(const char *text, size_t size) {
    memcpy(more(size), text, size);
    count += size;
  }

private:
  Array<char> _content;
};

// The lines of some values of a variable.
class Lines {
public:
  Lines() = default;
  Lines(const Lines &) = delete;
  Lines &operator=(const Lines &) = delete;
  ~Lines() { clear(); }

  // Adds the line of `value` to `text`; false if it is not known.
  bool add_to(Text &text, uint64_t value) {
    const size_t index = index_of(value);
    if (index == _known.size() || _known[index].value != value) return false;
    text.add(_known[index].line, _known[index].size);
    return true;
  }

  // Keeps the line of a value that is not known.
  void keep(uint64_t value, Array<char> &line) {
    if (_known.size() >= KNOWN) clear();
    const size_t index = index_of(value);
    char *const copy = static_cast<char *>(__builtin_malloc(line.size() + 1));
    if (!copy) __builtin_abort();
    memcpy(copy, line.begin(), line.size());
    _known.resize(_known.size() + 1);
    Known *const at = &_known[index];
    memmove(at + 1, at, (_known.size() - 1 - index) * sizeof *at);
    *at = {value, copy, line.size()};
  }

private:
  struct Known {
    uint64_t value;
    char *line;
    size_t size;
  };

  // The index of the first value that is not less.
  size_t index_of(uint64_t value) {
    size_t first = 0, last = _known.size();
    while (first < last) {
      const size_t middle = (first + last) / 2;
      if (_known[middle].value < value) first = middle + 1;
      else last = middle;
    }
    return first;
  }

  void clear() {
    for (Known &each : _known) __builtin_free(each.line);
    _known.resize(0);
  }

  Array<Known> _known; // in the order of their values
};

} // namespace

// -------------------------------------------------------------------------------------------------

struct Waves {
  Waves(const Instance *instance, const Callbacks &callbacks)
      : _instance(instance), _python(callbacks) {}

  ~Waves() { delete[] _known; }

  Array<Area> areas;
  Array<Variable> variables;
  Array<Part> parts; // a variable's one after the other, from its number in `_part_starts` on

  void begin(); // when these are complete
  int sample(Time time);
  int note();
  int date(Time time);
  int flush();
  bool interrupted() const { return _python.held() && _python.interrupted() != 0; }

  int failed = 0; // in the last call
  Time epoch = 0; // from which callers count
  Text text;
  Array<char> line; // of a value, as Python has put it in words

private:
  // Bits of a word that belong to a variable, and whether they are all of it.
  struct Field {
    uint64_t bits;
    uint32_t variable, shift;
    bool all;
  };

  void compare(const Area &area);
  void word_changed(size_t word, uint64_t value, uint64_t difference);
  int show_changed();
  void show(const Variable &variable, uint64_t value);
  void show(const Variable &variable);
  int show_words(uint32_t number);
  void gather(uint32_t number);

  const Instance *_instance; // whose functions change when the design is compiled
  Callbacks _python;
  Array<size_t> _part_starts;
  Array<Field> _fields; // a word's one after the other
  Array<size_t> _first_fields;
  Array<uint64_t> _words;   // of all areas, at the last sample
  Array<uint64_t> _noted;   // of each variable: the last sample in whose `_changed` it was
  Array<uint32_t> _changed; // variables to be gathered from `_words`
  Array<uint64_t> _value;   // the one gathered
  Lines *_known = nullptr;  // of each variable
  uint64_t _samples = 0;
  Time _time = 0;
  bool _dated = false; // whether `_time` is in the text
};

void Waves::begin() {
  size_t words = 0, widest = 1;
  for (const Area &area : areas) words = area.first + (area.size + 7) / 8;
  for (const Variable &variable : variables) {
    if (variable.width > widest) widest = variable.width;
  }
  _words.resize(words);
  _value.resize((widest + WORD - 1) / WORD + 1);
  _noted.resize(variables.size());
  _known = new Lines[variables.size()];
  _part_starts.resize(variables.size() + 1);
  _first_fields.resize(words + 2);
  for (const Part &part : parts) {
    _part_starts[part.variable + 1]++;
    _first_fields[part.word + 2]++; // one further up, for filling in moves each start to the end
  }
  for (size_t k = 1; k < _part_starts.size(); k++) _part_starts[k] += _part_starts[k - 1];
  for (size_t k = 1; k < _first_fields.size(); k++) _first_fields[k] += _first_fields[k - 1];
  _fields.resize(parts.size());
  for (const Part &part : parts) {
    const Variable &variable = variables[part.variable];
    const bool all = part.width == variable.width && variable.kind == DIGITS;
    Field &field = _fields[_first_fields[part.word + 1]++];
    field = {mask(part.width) << part.shift, part.variable, part.shift, all};
  }
}

// Appends all that has changed at `time`; on an error nothing of it.
int Waves::sample(Time time) {
  const size_t before = text.count;
  const bool dated = _dated && time == _time;
  int failed = date(time);
  if (failed) return failed;
  _instance->settle(_instance->top);
  const size_t begin = text.count;
  _samples++;
  for (const Area &area : areas) compare(area);
  failed = show_changed();
  if (failed || text.count == begin) {
    text.count = before;
    _dated = dated;
  }
  return failed || (text.count >= ENOUGH && flush());
}

// Takes the first sample, of time 0, whose lines Python writes.
int Waves::note() {
  const size_t before = text.count;
  _instance->settle(_instance->top);
  _samples++;
  for (const Area &area : areas) compare(area);
  const int failed = show_changed();
  text.count = before;
  _dated = true;
  return failed;
}

// Lets what is appended next be of `time`.
int Waves::date(Time time) {
  if (time < _time) return BACKWARDS;
  if (_dated && time == _time) return 0;
  char *to = text.more(48);
  *to++ = '#';
  to = write_time(to, time);
  *to++ = '\n';
  text.ends(to);
  _time = time;
  _dated = true;
  return 0;
}

// What is not written stays for another time.
int Waves::flush() {
  const int failed = _python.write(text.content(), text.count) != DONE;
  if (!failed) text.count = 0;
  return failed;
}

void Waves::compare(const Area &area) {
  uint64_t now[BLOCK];
  for (size_t done = 0; done < area.size; done += sizeof now) {
    const size_t first = area.first + done / 8;
    const size_t left = area.size - done, size = left < sizeof now ? left : sizeof now;
    if (_samples > 1 && !memcmp(&_words[first], area.content + done, size)) continue;
    now[(size - 1) / 8] = 0;
    memcpy(now, area.content + done, size);
    for (size_t k = 0; k < (size + 7) / 8; k++) {
      const uint64_t difference = _samples > 1 ? now[k] ^ _words[first + k] : ~uint64_t(0);
      _words[first + k] = now[k];
      if (difference) word_changed(first + k, now[k], difference);
    }
  }
}

void Waves::word_changed(size_t word, uint64_t value, uint64_t difference) {
  const Field *const end = _fields.begin() + _first_fields[word + 1];
  for (const Field *field = _fields.begin() + _first_fields[word]; field != end; field++) {
    if (!(field->bits & difference)) continue;
    if (field->all) {
      show(variables[field->variable], (value & field->bits) >> field->shift);
    } else if (_noted[field->variable] != _samples) {
      _noted[field->variable] = _samples;
      _changed.add(field->variable);
    }
  }
}

int Waves::show_changed() {
  int failed = 0;
  for (const uint32_t number : _changed) {
    if (failed) break;
    gather(number);
    if (variables[number].kind == DIGITS) {
      show(variables[number]);
    } else {
      failed = show_words(number);
    }
  }
  _changed.resize(0);
  return failed;
}

// A value of up to 64 bits.
void Waves::show(const Variable &variable, uint64_t value) {
  char *to = text.more(WORD + 16);
  if (variable.width == 1) {
    *to++ = '0' + value;
  } else {
    *to++ = 'b';
    to = write_bits(to, value, significant(value));
  }
  memcpy(to, variable.ending, sizeof variable.ending);
  text.ends(to + variable.ending_size);
}

// The value gathered.
void Waves::show(const Variable &variable) {
  size_t top = (variable.width - 1) / WORD;
  while (top && !_value[top]) top--;
  if (!top) return show(variable, _value[0]);
  char *to = text.more(WORD * (top + 1) + 16);
  *to++ = 'b';
  to = write_bits(to, _value[top], significant(_value[top]));
  while (top--) to = write_bits(to, _value[top], WORD);
  memcpy(to, variable.ending, sizeof variable.ending);
  text.ends(to + variable.ending_size);
}

// The value gathered, in the words that Python has for it.
int Waves::show_words(uint32_t number) {
  const Variable &variable = variables[number];
  const bool keep = variable.kind == WORDS && variable.width <= WORD;
  if (keep && _known[number].add_to(text, _value[0])) return 0;
  const int failed = _python.render(number, _value.begin()) != DONE;
  if (failed) return failed;
  text.add(line.begin(), line.size());
  if (keep) _known[number].keep(_value[0], line);
  return 0;
}

void Waves::gather(uint32_t number) {
  memset(_value.begin(), 0, _value.size() * sizeof _value[0]);
  for (size_t k = _part_starts[number]; k < _part_starts[number + 1]; k++) {
    const Part &part = parts[k];
    const uint64_t bits = _words[part.word] >> part.shift & mask(part.width);
    const size_t at = part.low / WORD, up = part.low % WORD;
    _value[at] |= bits << up;
    if (up) _value[at + 1] |= bits >> (WORD - up);
  }
}

// --- for Python ----------------------------------------------------------------------------------

// `parts` are in the order of their variables. `instance` lives as long as the result.
EXPORT Waves *waves_create(const Instance *instance, const Callbacks *callbacks, const Area *areas,
                           size_t area_count, const Variable *variables, size_t variable_count,
                           const Part *parts, size_t part_count) {
  Waves *waves = new Waves(instance, *callbacks);
  waves->areas.take(areas, area_count);
  waves->variables.take(variables, variable_count);
  waves->parts.take(parts, part_count);
  waves->begin();
  return waves;
}

EXPORT void waves_destroy(Waves *waves) { delete waves; }

// A `TakeSample`.
EXPORT int waves_sample(Waves *waves, uint64_t femtoseconds) {
  if (waves->interrupted()) return 1;
  return waves->failed = waves->sample(waves->epoch + femtoseconds);
}

// The first sample, of time 0, is in the header of the file.
EXPORT int waves_note(Waves *waves) {
  if (waves->interrupted()) return 1;
  return waves->failed = waves->note();
}

// From now on times are counted from this one, of two words.
EXPORT void waves_count_from(Waves *waves, uint64_t high, uint64_t low) {
  waves->epoch = Time(high) << WORD | low;
}

// Lines that Python has made, of variables that it samples itself.
EXPORT int waves_add(Waves *waves, uint64_t femtoseconds, const char *text, size_t size) {
  waves->failed = waves->date(waves->epoch + femtoseconds);
  if (!waves->failed) waves->text.add(text, size);
  return waves->failed;
}

// The answer to `render`: a line of the file.
EXPORT void waves_line(Waves *waves, const char *text, size_t size) { waves->line.take(text, size); }

// Writes to the file the text that it lacks.
EXPORT int waves_flush(Waves *waves) {
  return waves->failed = waves->text.count && waves->flush();
}

EXPORT int waves_failed(const Waves *waves) { return waves->failed; }
