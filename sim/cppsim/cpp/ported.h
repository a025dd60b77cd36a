// Clocks a model until an event. Knows neither the circuit nor who wrote the model: the file that
// includes this one, behind told.h and storage.h, says all that in `struct Circuit`. Values are arrays
// of words of 64 bits, the least significant first.
//   using Top                                    the model
//   static constexpr size_t buffers              how many storage buffers there are
//   static uint64_t *port(Top &, size_t)         a port's value
//   static size_t width(size_t)                  its bits
//   static bool kept(size_t)                     whether a port shows after an edge what it was
//                                                before; others do between settle() and the edge
//   static void settle(Top &)                    lets outputs follow from state and inputs
//   static size_t edge(Top &, const driver::Buffer *, driver::Heard &)
//                                                a rising edge, with the storage served; 0, or the
//                                                number of the storage port at fault, from 1
//   static void clock(Top &, bool), static uint64_t *shown(Top &)
//                                                for waveforms: the clock's level to show, and the
//                                                words of all that is shown

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace driver {

// What a model has told, in order, and whether it was that a check failed.
struct Heard {
  Told told = {};
  bool failed = false;

  ~Heard() { free(told.words); }

  void add(size_t number, bool failure, const uint64_t *values, size_t size) {
    told.add(number, values, size);
    failed |= failure;
  }
};

enum Code : uint32_t { SET, GET, STEP, UNTIL };

struct Instruction {
  uint32_t code;
  uint32_t port;
  uint64_t word;  // SET and GET: which 64 bits of the port
  uint64_t value; // SET: the value; STEP, UNTIL: the most cycles
};

template <class Circuit> class Model {
public:
  Model() { new (memory) typename Circuit::Top(); }
  ~Model() { destroy(); }
  Model(const Model &) = delete;

  typename Circuit::Top &top() { return *reinterpret_cast<typename Circuit::Top *>(memory); }

  // In place, so that the pointers to ports stay good.
  void reset() {
    destroy();
    std::memset(memory, 0, sizeof memory);
    new (memory) typename Circuit::Top();
    cycles = 0;
    storage_fault = 0;
    heard.told.count = 0;
    heard.failed = false;
  }

  void settle() { Circuit::settle(top()); }

  // Returns false when a rule was broken.
  bool edge() {
    storage_fault = Circuit::edge(top(), buffers, heard);
    cycles++;
    if (waves) show();
    return !storage_fault && !heard.failed;
  }

  bool step(uint64_t count) {
    while (count--)
      if (!edge()) return false;
    return true;
  }

  bool run_until(size_t port, uint64_t limit, bool &high) {
    const uint64_t *condition = Circuit::port(top(), port);
    const size_t length = (Circuit::width(port) + 63) / 64;
    // A look for waveforms settles what is kept.
    if (Circuit::kept(port) && !waves) {
      while (limit-- && !high) {
        const bool legal = edge();
        high = *condition != 0;
        if (!legal) return false;
      }
      return true;
    }
    while (limit-- && !high) {
      settle();
      for (size_t i = 0; i < length; i++) high |= condition[i] != 0;
      if (!edge()) return false;
    }
    return true;
  }

  // Returns how many instructions were done; fewer than `count`: the next one failed.
  uint64_t run(const Instruction *program, uint64_t count, uint64_t *results) {
    bool stale = true;
    for (uint64_t i = 0; i < count; i++) {
      const Instruction &item = program[i];
      uint64_t *value = Circuit::port(top(), item.port) + item.word;
      bool high = false;
      switch (item.code) {
      case SET:
        *value = item.value;
        break;
      case GET:
        if (stale) settle();
        *results++ = *value;
        break;
      case STEP:
        if (!step(item.value)) return i;
        break;
      case UNTIL:
        if (!run_until(item.port, item.value, high) || !high) return i;
        break;
      }
      stale = item.code != GET;
    }
    return count;
  }

  // After edge number `cycles`, which are 1 us apart: the clock is high for half a cycle, then low.
  void show() {
    Circuit::clock(top(), true);
    if (!sample(waves, 1000000000 * cycles - 500000000)) {
      Circuit::clock(top(), false);
      if (!sample(waves, 1000000000 * cycles)) return;
    }
    waves = nullptr;
  }

  Buffer buffers[Circuit::buffers + 1] = {};
  uint64_t cycles = 0;
  size_t storage_fault = 0;
  Heard heard;
  void *waves = nullptr;
  int (*sample)(void *waves, uint64_t femtoseconds) = nullptr; // of waves.h

private:
  void destroy() {
    using Top = typename Circuit::Top;
    top().~Top();
  }

  alignas(typename Circuit::Top) unsigned char memory[sizeof(typename Circuit::Top)] = {};
};

} // namespace driver

// The C interface, for the one circuit of this library.
#define DRIVER_INTERFACE(Circuit)                                                                  \
  using Model = driver::Model<Circuit>;                                                            \
  EXPORT Model *model_create() { return new Model(); }                                             \
  EXPORT void model_destroy(Model *model) { delete model; }                                        \
  EXPORT void model_reset(Model *model) { model->reset(); }                                        \
  EXPORT uint64_t *model_port(Model *model, size_t port) {                                         \
    return Circuit::port(model->top(), port);                                                      \
  }                                                                                                \
  EXPORT void model_buffer(Model *model, size_t index, uint8_t *bytes, uint64_t size) {            \
    model->buffers[index] = {bytes, size};                                                         \
  }                                                                                                \
  EXPORT void model_settle(Model *model) { model->settle(); }                                      \
  EXPORT int model_step(Model *model, uint64_t count) { return model->step(count); }               \
  EXPORT int model_run_until(Model *model, size_t port, uint64_t limit, int *came) {               \
    bool high = false;                                                                             \
    bool legal = model->run_until(port, limit, high);                                              \
    *came = high;                                                                                  \
    return legal;                                                                                  \
  }                                                                                                \
  EXPORT uint64_t model_run(Model *model, const driver::Instruction *program, uint64_t count,      \
                            uint64_t *results) {                                                   \
    return model->run(program, count, results);                                                    \
  }                                                                                                \
  EXPORT uint64_t model_cycles(Model *model) { return model->cycles; }                             \
  EXPORT size_t model_storage_fault(Model *model) { return model->storage_fault; }                 \
  EXPORT size_t model_told(Model *model, const uint64_t **first) {                                 \
    const size_t count = model->heard.told.count;                                                  \
    *first = model->heard.told.words;                                                              \
    model->heard.told.count = 0;                                                                   \
    return count;                                                                                  \
  }                                                                                                \
  EXPORT uint64_t *model_shown(Model *model) { return Circuit::shown(model->top()); }              \
  EXPORT void model_waves(Model *model, void *waves, int (*sample)(void *, uint64_t)) {            \
    model->waves = waves;                                                                          \
    model->sample = sample;                                                                        \
  }
