// A small program that computes one value of up to 64 bits from the words of an instance.
//
// Instructions follow each other without branches; each leaves a value that later ones take by its
// number, with zeros above its bits. The value of the last one is that of the program.

#pragma once

#include <stddef.h>
#include <stdint.h>

// The order is that of `Code` in probe.py.
enum class Code : uint32_t {
  CONSTANT, // mask
  FETCH,    // b, merged with what is in the word a from the bit `from` on, moved to the bit `to`
  PICK,     // the same of the value a
  SPREAD,   // b, merged with mask where the lowest bit of a is 1
  ROW_8,    // at the address `mask`, of b rows each c elements of 8 bits apart, that of number a
  ROW_16,
  ROW_32,
  ROW_64,
  AND, // results of the others are cut to mask
  OR,
  XOR,
  NOT,
  SELECT, // b if a is not 0, else c
  ADD,
  SUBTRACT,
  MULTIPLY,
  NEGATE,
  DIVIDE,
  DIVIDE_SIGNED, // signed operands fill a word when they are moved `from` bits up
  MODULO,
  MODULO_SIGNED,
  EQUAL,
  UNEQUAL,
  LESS,
  LESS_EQUAL,
  LESS_SIGNED,
  LESS_EQUAL_SIGNED,
  ODD,
  LEFT,
  RIGHT,
  RIGHT_SIGNED,
};

struct Instruction {
  Code code;
  uint32_t a, b, c;
  uint32_t from, to;
  uint64_t mask;
};

struct Program {
  const Instruction *instructions;
  uint64_t *values; // room for as many as there are instructions
  size_t count;
};

extern "C" uint64_t probe_value(const Program *program, const uint64_t *words);
