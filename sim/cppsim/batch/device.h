// What a GPU's compiler without headers is to know before the source. All its functions are the
// device's, by an option.

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef decltype(sizeof(0)) size_t;
#define SIZE_MAX (~uint64_t(0))
#define __builtin_parityll(x) (__popcll(x) & 1)
