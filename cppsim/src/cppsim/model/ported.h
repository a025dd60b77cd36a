// Clocks one instance of a circuit, and executes programs on it. It depends neither on the circuit nor
// on the writer of its C++: the file that includes this one, after messages.h and storage.h, describes
// both in `struct Circuit`. The ports are words of 64 bits; the words of a port are in a row, its lowest
// bits first.
//   using Top                                    the circuit's state
//   static constexpr size_t buffers              the number of storage buffers
//   static uint64_t *word(Top &, size_t)         a word of the ports
//   static bool kept(size_t)                     whether a word shows after an edge its value
//                                                before it; others do between settle() and the edge
//   static void settle(Top &)                    lets outputs follow from state and inputs
//   static size_t edge(Top &, const driver::Buffer *, driver::ModelMessages &)
//                                                a rising edge, with the storage served; 0, or the
//                                                number of the storage port at fault, from 1
//   static void *memory(Top &, size_t)           the array of a memory, whose rows are 0 at first
//   static void clock(Top &, bool), static uint64_t *shown(Top &)
//                                                for waveforms: the clock's level to show, and the
//                                                words of all that is shown

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace driver {

// The messages of a model, in order, and whether a check failed.
struct ModelMessages {
  Messages list = {};
  bool failed = false;

  ~ModelMessages() { free(list.words); }

  void add(size_t number, bool failure, const uint64_t *values, size_t size) {
    list.add(number, values, size);
    failed |= failure;
  }
};

// As in batch.h, without `look`: here ports settle when they are read.
enum Code : uint64_t { SET, TAKE, GET, STEP, UNTIL, REPEAT, AGAIN };

struct Instruction {
  uint64_t code;
  uint64_t port;  // its word; UNTIL: the first, and the last 32 bits up; AGAIN: where to go back to
  uint64_t value; // SET: the word; STEP, UNTIL: the most cycles; REPEAT: how often
  uint64_t look;
};

constexpr size_t DEPTH = 8; // of repeats within one another

constexpr uint64_t SLICE = 1 << 20; // cycles of a program after which its caller may hear Ctrl-C
constexpr uint64_t PAUSED = ~uint64_t(0);

// Where a program is, in the middle of an instruction if it `waits`.
struct Cursor {
  const uint64_t *input;
  uint64_t *output;
  uint64_t number = 0;
  bool waits = false;
  uint64_t left = 0;  // most cycles of this STEP or UNTIL
  uint64_t began = 0; // the cycle before it
  size_t depth = 0;
  uint64_t loops[DEPTH] = {};
};

template <class Circuit> class Instance {
public:
  Instance() { new (memory) typename Circuit::Top(); }
  ~Instance() { destroy(); }
  Instance(const Instance &) = delete;

  typename Circuit::Top &top() { return *reinterpret_cast<typename Circuit::Top *>(memory); }

  // In place, so that the pointers to ports stay good.
  void reset() {
    destroy();
    std::memset(memory, 0, sizeof memory);
    new (memory) typename Circuit::Top();
    earlier += cycles;
    cycles = 0;
    storage_fault = 0;
    messages.list.count = 0;
    messages.failed = false;
  }

  void settle() { Circuit::settle(top()); }

  // Returns false when a rule was broken.
  bool edge() {
    if (waves) show(false);
    storage_fault = Circuit::edge(top(), buffers, messages);
    cycles++;
    if (waves) show(true);
    return !storage_fault && !messages.failed;
  }

  bool step(uint64_t count) {
    if (waves) show(cycles != 0);
    while (count--)
      if (!edge()) return false;
    return true;
  }

  // `port` is as in an UNTIL.
  bool run_until(uint64_t port, uint64_t limit, bool &high) {
    const size_t first = uint32_t(port), last = port >> 32;
    const uint64_t *condition = Circuit::word(top(), first);
    if (waves) show(cycles != 0);
    // A sample for waveforms settles the words that show the time before the edge.
    if (Circuit::kept(first) && !waves) {
      while (limit-- && !high) {
        const bool legal = edge();
        high = *condition != 0;
        if (!legal) return false;
      }
      return true;
    }
    while (limit-- && !high) {
      settle();
      for (size_t i = 0; i <= last - first; i++) high |= condition[i] != 0;
      if (!edge()) return false;
    }
    return true;
  }

  // Takes columns from `input` and appends results to `output`. Returns `count`, or the number of
  // an instruction that broke a rule; or PAUSED after some cycles, to `resume` there.
  uint64_t run(const Instruction *program, uint64_t count, const uint64_t *input, uint64_t *output,
               bool resume) {
    Cursor at = resume ? cursor : Cursor{input, output};
    const uint64_t end = cycles + SLICE;
    bool stale = true, high = false;
    for (; at.number < count; at.number++) {
      const Instruction &x = program[at.number];
      switch (x.code) {
      case SET:
      case TAKE:
        *Circuit::word(top(), x.port) = x.code == SET ? x.value : *at.input++;
        stale = true;
        break;
      case GET:
        if (stale) settle();
        stale = false;
        *at.output++ = *Circuit::word(top(), x.port);
        break;
      case STEP:
      case UNTIL:
        if (!at.waits) at.left = x.value, at.began = cycles;
        at.waits = true;
        high = false;
        do {
          if (cycles == end) {
            cursor = at;
            return PAUSED;
          }
          const uint64_t most = at.left < end - cycles ? at.left : end - cycles;
          if (!(x.code == STEP ? step(most) : run_until(x.port, most, high))) return at.number;
          at.left -= most;
        } while (at.left && !high);
        at.waits = false;
        if (x.code == UNTIL) *at.output++ = high ? cycles - at.began : 0;
        stale = true;
        break;
      case REPEAT:
        at.loops[at.depth++] = x.value;
        break;
      case AGAIN:
        if (--at.loops[at.depth - 1]) at.number = x.port - 1;
        else at.depth--;
      }
    }
    return count;
  }

  // Shows the circuit at the last edge, with a high clock, or half a cycle behind it. Edges are 1 us
  // apart. An input that is set between two edges changes at the first, as in Amaranth's simulator.
  void show(bool high) {
    Circuit::clock(top(), high);
    if (sample(waves, 1000000000 * (earlier + cycles) - 500000000 * high)) waves = nullptr;
  }

  Buffer buffers[Circuit::buffers + 1] = {};
  uint64_t cycles = 0;
  uint64_t earlier = 0; // cycles before the last reset
  size_t storage_fault = 0;
  ModelMessages messages;
  void *waves = nullptr;
  int (*sample)(void *waves, uint64_t femtoseconds) = nullptr; // of instance.h

private:
  Cursor cursor = {};

  void destroy() {
    using Top = typename Circuit::Top;
    top().~Top();
  }

  alignas(typename Circuit::Top) unsigned char memory[sizeof(typename Circuit::Top)] = {};
};

} // namespace driver

// The C interface, for the one circuit of this library.
#define DRIVER_INTERFACE(Circuit)                                                                  \
  using Instance = driver::Instance<Circuit>;                                                      \
  EXPORT Instance *model_create() { return new Instance(); }                                       \
  EXPORT void model_destroy(Instance *instance) { delete instance; }                               \
  EXPORT void model_reset(Instance *instance) { instance->reset(); }                               \
  EXPORT uint64_t *model_word(Instance *instance, size_t word) {                                   \
    return Circuit::word(instance->top(), word);                                                   \
  }                                                                                                \
  EXPORT void *model_memory(Instance *instance, size_t number) {                                   \
    return Circuit::memory(instance->top(), number);                                               \
  }                                                                                                \
  EXPORT void model_buffer(Instance *instance, size_t index, uint8_t *bytes, uint64_t size) {      \
    instance->buffers[index] = {bytes, size};                                                      \
  }                                                                                                \
  EXPORT void model_settle(Instance *instance) { instance->settle(); }                             \
  EXPORT int model_step(Instance *instance, uint64_t count) { return instance->step(count); }      \
  EXPORT int model_run_until(Instance *instance, uint64_t port, uint64_t limit, int *came) {       \
    bool high = false;                                                                             \
    bool legal = instance->run_until(port, limit, high);                                           \
    *came = high;                                                                                  \
    return legal;                                                                                  \
  }                                                                                                \
  EXPORT uint64_t model_run(Instance *instance, const driver::Instruction *program, uint64_t count,\
                            const uint64_t *input, uint64_t *output, int resume) {                 \
    return instance->run(program, count, input, output, resume != 0);                              \
  }                                                                                                \
  EXPORT uint64_t model_cycles(Instance *instance) { return instance->cycles; }                    \
  EXPORT size_t model_storage_fault(Instance *instance) { return instance->storage_fault; }        \
  EXPORT size_t model_messages(Instance *instance, const uint64_t **first) {                       \
    const size_t count = instance->messages.list.count;                                            \
    *first = instance->messages.list.words;                                                        \
    instance->messages.list.count = 0;                                                             \
    return count;                                                                                  \
  }                                                                                                \
  EXPORT uint64_t *model_shown(Instance *instance) { return Circuit::shown(instance->top()); }     \
  EXPORT void model_waves(Instance *instance, void *waves, int (*sample)(void *, uint64_t)) {      \
    if (instance->waves) instance->show(instance->cycles != 0);                                    \
    if (instance->waves) instance->show(false);                                                    \
    instance->waves = waves;                                                                       \
    instance->sample = sample;                                                                     \
  }
