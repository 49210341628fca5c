// Factorizations of batches of matrices, by the routines of the caller's LAPACK. A row-major matrix is the transpose of a column-major one,
// so the triangle and the side that a routine receives are the opposite ones, and nothing is transposed in memory.

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <class T>
using Potrf = void (*)(char* uplo, int* n, T* a, int* lda, int* info);

template <class T>
using Trsm = void (*)(char* side, char* uplo, char* trans, char* diag, int* m, int* n, T* alpha, T* a, int* lda, T* b, int* ldb);

// attributes: batch, n, lower. The factor of each matrix `a`, with zeros in the other triangle; NaN if it has none.
template <class T>
int32_t Cholesky(void* routine, void** pointers, const int64_t* attributes) {
  const auto potrf = reinterpret_cast<Potrf<T>>(routine);
  const int64_t batch = attributes[0], n = attributes[1];
  const bool lower = attributes[2] != 0;
  char uplo = lower ? 'U' : 'L';
  int order = static_cast<int>(n);
  T* matrix = static_cast<T*>(pointers[1]);
  std::memcpy(matrix, pointers[0], sizeof(T) * batch * n * n);
  for (int64_t number = 0; number < batch; ++number, matrix += n * n) {
    int info = 0;
    potrf(&uplo, &order, matrix, &order, &info);
    if (info != 0) {
      const auto nan = std::numeric_limits<decltype(std::real(T()))>::quiet_NaN();
      std::fill(matrix, matrix + n * n, T(nan));
      continue;
    }
    for (int64_t row = 0; row < n; ++row) {
      T* begin = matrix + row * n;
      lower ? std::fill(begin + row + 1, begin + n, T(0)) : std::fill(begin, begin + row, T(0));
    }
  }
  return 0;
}

// attributes: batch, rows and columns of b, left_side, lower, unit_diagonal, and how `a` is transposed (an ASCII letter: N, T or C).
template <class T>
int32_t TriangularSolve(void* routine, void** pointers, const int64_t* attributes) {
  const auto trsm = reinterpret_cast<Trsm<T>>(routine);
  const int64_t batch = attributes[0];
  int rows = static_cast<int>(attributes[1]), columns = static_cast<int>(attributes[2]);
  const bool left = attributes[3] != 0;
  char side = left ? 'R' : 'L', uplo = attributes[4] != 0 ? 'U' : 'L', diagonal = attributes[5] != 0 ? 'U' : 'N';
  char transposed = static_cast<char>(attributes[6]);
  int order = left ? rows : columns;
  const int64_t size = static_cast<int64_t>(rows) * columns;
  T one(1);
  T* a = static_cast<T*>(pointers[0]);
  T* solution = static_cast<T*>(pointers[2]);
  std::memcpy(solution, pointers[1], sizeof(T) * batch * size);
  for (int64_t number = 0; number < batch; ++number, a += static_cast<int64_t>(order) * order, solution += size) {
    trsm(&side, &uplo, &transposed, &diagonal, &columns, &rows, &one, a, &order, solution, &columns);
  }
  return 0;
}

}  // namespace

#define TRIVIUM_LAPACK(name, T)                                                                                         \
  TRIVIUM_EXPORT int32_t trivium_cholesky_##name(void* routine, void** pointers, const int64_t* attributes) {           \
    return Cholesky<T>(routine, pointers, attributes);                                                                  \
  }                                                                                                                     \
  TRIVIUM_EXPORT int32_t trivium_triangular_solve_##name(void* routine, void** pointers, const int64_t* attributes) {   \
    return TriangularSolve<T>(routine, pointers, attributes);                                                           \
  }

TRIVIUM_LAPACK(s, float)
TRIVIUM_LAPACK(d, double)
TRIVIUM_LAPACK(c, std::complex<float>)
TRIVIUM_LAPACK(z, std::complex<double>)
