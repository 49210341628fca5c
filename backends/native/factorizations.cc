// Factorizations of batches of matrices, by the LAPACK routines that a program's caller has: Cholesky, LU, QR, LDL, orthogonal factors,
// eigenvalues, singular values, and reductions to simpler forms. Matrices in memory are row-major; each is copied into LAPACK's column-major order and
// back. The results are those of jaxlib's handlers of the same names, `info` included.

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <new>
#include <tuple>
#include <type_traits>
#include <vector>

#define TRIVIUM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <class T>
using Real = decltype(std::real(T()));

template <class T>
using Complex = std::complex<Real<T>>;

template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

using Int = int;  // as in SciPy's LAPACK

// Converts a row-major matrix to column-major order, and back; both are `T`, or the second is its complex type.
template <class T>
void ToColumns(const T* rows, int64_t m, int64_t n, T* columns) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) columns[j * m + i] = rows[i * n + j];
  }
}

template <class T>
void ToRows(const T* columns, int64_t m, int64_t n, T* rows) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) rows[i * n + j] = columns[j * m + i];
  }
}

// LAPACK's leading dimensions are at least 1.
Int Lead(int64_t m) { return static_cast<Int>(std::max<int64_t>(m, 1)); }

// Space for at least one element, so that it has an address.
template <class T>
std::vector<T> Room(int64_t size) {
  return std::vector<T>(std::max<int64_t>(size, 1));
}

// The size that a routine returns for a workspace query: `lwork` is -1, the size is in the first element.
template <class T>
Int Size(const T& answer) {
  return std::max<Int>(static_cast<Int>(std::real(answer)), 1);
}

// attributes: batch, n, uplo (L or U). A Hermitian matrix -> its factor in that triangle, info.
template <class T>
void Potrf(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(char*, Int*, T*, Int*, Int*);
  const int64_t batch = attributes[0], n = attributes[1];
  char uplo = static_cast<char>(attributes[2]);
  const T* a = static_cast<T*>(pointers[0]);
  T* factor = static_cast<T*>(pointers[1]);
  Int* info = static_cast<Int*>(pointers[2]);
  Int order = n, lead = Lead(n);
  auto matrix = Room<T>(n * n);
  for (int64_t b = 0; b < batch; ++b, a += n * n, factor += n * n, ++info) {
    ToColumns(a, n, n, matrix.data());
    reinterpret_cast<Routine>(routine)(&uplo, &order, matrix.data(), &lead, info);
    ToRows(matrix.data(), n, n, factor);
  }
}

// attributes: batch, n, rows and columns of b, side (L or R), uplo (L or U), how a is transposed (N, T or C), diag (N or U). a, b -> x.
template <class T>
void Trsm(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(char*, char*, char*, char*, Int*, Int*, T*, T*, Int*, T*, Int*);
  const auto [batch, n, rows, columns] = std::tuple(attributes[0], attributes[1], attributes[2], attributes[3]);
  char side = static_cast<char>(attributes[4]), uplo = static_cast<char>(attributes[5]);
  char transposed = static_cast<char>(attributes[6]), diagonal = static_cast<char>(attributes[7]);
  const T* a = static_cast<T*>(pointers[0]);
  const T* given = static_cast<T*>(pointers[1]);
  T* solution = static_cast<T*>(pointers[2]);
  Int height = rows, width = columns, order = Lead(n), lead = Lead(rows);
  T one(1);
  auto triangle = Room<T>(n * n), matrix = Room<T>(rows * columns);
  for (int64_t b = 0; b < batch; ++b, a += n * n, given += rows * columns, solution += rows * columns) {
    ToColumns(a, n, n, triangle.data());
    ToColumns(given, rows, columns, matrix.data());
    reinterpret_cast<Routine>(routine)(&side, &uplo, &transposed, &diagonal, &height, &width, &one, triangle.data(), &order, matrix.data(), &lead);
    ToRows(matrix.data(), rows, columns, solution);
  }
}

// attributes: batch, m, n. a -> lu, pivots (from 1), info.
template <class T>
void Getrf(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(Int*, Int*, T*, Int*, Int*, Int*);
  const auto [batch, m, n] = std::tuple(attributes[0], attributes[1], attributes[2]);
  const T* a = static_cast<T*>(pointers[0]);
  T* lu = static_cast<T*>(pointers[1]);
  Int* pivots = static_cast<Int*>(pointers[2]);
  Int* info = static_cast<Int*>(pointers[3]);
  Int rows = m, columns = n, lead = Lead(m);
  auto matrix = Room<T>(m * n);
  for (int64_t b = 0; b < batch; ++b, a += m * n, lu += m * n, pivots += std::min(m, n), ++info) {
    ToColumns(a, m, n, matrix.data());
    reinterpret_cast<Routine>(routine)(&rows, &columns, matrix.data(), &lead, pivots, info);
    ToRows(matrix.data(), m, n, lu);
  }
}

// attributes: batch, m, n. a -> reflectors and R, their scales.
template <class T>
void Geqrf(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(Int*, Int*, T*, Int*, T*, T*, Int*, Int*);
  const auto [batch, m, n] = std::tuple(attributes[0], attributes[1], attributes[2]);
  const T* a = static_cast<T*>(pointers[0]);
  T* qr = static_cast<T*>(pointers[1]);
  T* tau = static_cast<T*>(pointers[2]);
  Int rows = m, columns = n, lead = Lead(m), info = 0, lwork = -1;
  auto matrix = Room<T>(m * n), work = Room<T>(1);
  const auto call = [&](T* scales) {
    reinterpret_cast<Routine>(routine)(&rows, &columns, matrix.data(), &lead, scales, work.data(), &lwork, &info);
  };
  call(tau);
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += m * n, qr += m * n, tau += std::min(m, n)) {
    ToColumns(a, m, n, matrix.data());
    call(tau);
    ToRows(matrix.data(), m, n, qr);
  }
}

// attributes: batch, m, n. a, permutation -> reflectors and R, permutation, scales.
template <class T>
void Geqp3(void* routine, void** pointers, const int64_t* attributes) {
  const auto [batch, m, n] = std::tuple(attributes[0], attributes[1], attributes[2]);
  const T* a = static_cast<T*>(pointers[0]);
  const Int* fixed = static_cast<Int*>(pointers[1]);
  T* qr = static_cast<T*>(pointers[2]);
  Int* permutation = static_cast<Int*>(pointers[3]);
  T* tau = static_cast<T*>(pointers[4]);
  Int rows = m, columns = n, lead = Lead(m), info = 0, lwork = -1;
  auto matrix = Room<T>(m * n), work = Room<T>(1);
  auto rwork = Room<Real<T>>(2 * n);
  const auto call = [&] {
    if constexpr (kIsComplex<T>) {
      using Routine = void (*)(Int*, Int*, T*, Int*, Int*, T*, T*, Int*, Real<T>*, Int*);
      reinterpret_cast<Routine>(routine)(&rows, &columns, matrix.data(), &lead, permutation, tau, work.data(), &lwork, rwork.data(), &info);
    } else {
      using Routine = void (*)(Int*, Int*, T*, Int*, Int*, T*, T*, Int*, Int*);
      reinterpret_cast<Routine>(routine)(&rows, &columns, matrix.data(), &lead, permutation, tau, work.data(), &lwork, &info);
    }
  };
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += m * n, fixed += n, qr += m * n, permutation += n, tau += std::min(m, n)) {
    ToColumns(a, m, n, matrix.data());
    std::copy(fixed, fixed + n, permutation);
    call();
    ToRows(matrix.data(), m, n, qr);
  }
}

// attributes: batch, m, n, k. Reflectors, scales -> the first n columns of their product.
template <class T>
void Orgqr(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(Int*, Int*, Int*, T*, Int*, T*, T*, Int*, Int*);
  const auto [batch, m, n, k] = std::tuple(attributes[0], attributes[1], attributes[2], attributes[3]);
  const T* a = static_cast<T*>(pointers[0]);
  T* tau = static_cast<T*>(pointers[1]);
  T* q = static_cast<T*>(pointers[2]);
  Int rows = m, columns = n, count = k, lead = Lead(m), info = 0, lwork = -1;
  auto matrix = Room<T>(m * n), work = Room<T>(1);
  const auto call = [&] {
    reinterpret_cast<Routine>(routine)(&rows, &columns, &count, matrix.data(), &lead, tau, work.data(), &lwork, &info);
  };
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += m * n, tau += k, q += m * n) {
    ToColumns(a, m, n, matrix.data());
    call();
    ToRows(matrix.data(), m, n, q);
  }
}

// attributes: batch, rows of the reflectors, their columns, k, m, n, left, transposed. Reflectors, scales, c -> Q c, Q^H c, c Q or c Q^H.
template <class T>
void Ormqr(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(char*, char*, Int*, Int*, Int*, T*, Int*, T*, T*, Int*, T*, Int*, Int*);
  const auto [batch, order, width, k] = std::tuple(attributes[0], attributes[1], attributes[2], attributes[3]);
  const int64_t m = attributes[4], n = attributes[5];
  char side = attributes[6] ? 'L' : 'R', transposed = !attributes[7] ? 'N' : kIsComplex<T> ? 'C' : 'T';
  const T* a = static_cast<T*>(pointers[0]);
  T* tau = static_cast<T*>(pointers[1]);
  const T* c = static_cast<T*>(pointers[2]);
  T* product = static_cast<T*>(pointers[3]);
  Int rows = m, columns = n, count = k, lead = Lead(order), c_lead = Lead(m), info = 0, lwork = -1;
  auto reflectors = Room<T>(order * width), matrix = Room<T>(m * n), work = Room<T>(1);
  const auto call = [&] {
    reinterpret_cast<Routine>(routine)(&side, &transposed, &rows, &columns, &count, reflectors.data(), &lead, tau, matrix.data(), &c_lead,
                                       work.data(), &lwork, &info);
  };
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += order * width, tau += k, c += m * n, product += m * n) {
    ToColumns(a, order, width, reflectors.data());
    ToColumns(c, m, n, matrix.data());
    call();
    ToRows(matrix.data(), m, n, product);
  }
}

// attributes: batch, n, mode (V or N), uplo (L or U). A Hermitian matrix -> eigenvectors (or the matrix), eigenvalues,
// info.
template <class T>
void Syevd(void* routine, void** pointers, const int64_t* attributes) {
  const int64_t batch = attributes[0], n = attributes[1];
  char mode = static_cast<char>(attributes[2]), uplo = static_cast<char>(attributes[3]);
  const T* a = static_cast<T*>(pointers[0]);
  T* vectors = static_cast<T*>(pointers[1]);
  Real<T>* values = static_cast<Real<T>*>(pointers[2]);
  Int* info = static_cast<Int*>(pointers[3]);
  Int order = n, lead = Lead(n), lwork = -1, lrwork = -1, liwork = -1;
  auto matrix = Room<T>(n * n), work = Room<T>(1);
  auto rwork = Room<Real<T>>(1);
  auto iwork = Room<Int>(1);
  const auto call = [&] {
    if constexpr (kIsComplex<T>) {
      using Routine = void (*)(char*, char*, Int*, T*, Int*, Real<T>*, T*, Int*, Real<T>*, Int*, Int*, Int*, Int*);
      reinterpret_cast<Routine>(routine)(&mode, &uplo, &order, matrix.data(), &lead, values, work.data(), &lwork, rwork.data(), &lrwork,
                                         iwork.data(), &liwork, info);
    } else {
      using Routine = void (*)(char*, char*, Int*, T*, Int*, T*, T*, Int*, Int*, Int*, Int*);
      reinterpret_cast<Routine>(routine)(&mode, &uplo, &order, matrix.data(), &lead, values, work.data(), &lwork, iwork.data(), &liwork,
                                         info);
    }
  };
  if (batch == 0) return;
  call();
  work.resize(lwork = Size(work[0]));
  rwork.resize(lrwork = Size(rwork[0]));
  iwork.resize(liwork = std::max(iwork[0], 1));
  for (int64_t b = 0; b < batch; ++b, a += n * n, vectors += n * n, values += n, ++info) {
    ToColumns(a, n, n, matrix.data());
    call();
    if (mode == 'V') {
      ToRows(matrix.data(), n, n, vectors);
    } else {
      std::copy_n(a, n * n, vectors);
    }
  }
}

// attributes: batch, m, n, mode (A, S or N), columns of u, rows of vt, and whether the routine is gesdd (or gesvd).
// a -> a, singular values, u, vt, info. What a mode does not compute is zero.
template <class T>
void Svd(void* routine, void** pointers, const int64_t* attributes) {
  const auto [batch, m, n] = std::tuple(attributes[0], attributes[1], attributes[2]);
  char mode = static_cast<char>(attributes[3]);
  const int64_t u_columns = attributes[4], vt_rows = attributes[5], k = std::min(m, n), larger = std::max(m, n);
  const bool divides = attributes[6] != 0;
  const T* a = static_cast<T*>(pointers[0]);
  T* kept = static_cast<T*>(pointers[1]);
  Real<T>* values = static_cast<Real<T>*>(pointers[2]);
  T* u_rows = static_cast<T*>(pointers[3]);
  T* vt_out = static_cast<T*>(pointers[4]);
  Int* info = static_cast<Int*>(pointers[5]);
  Int rows = m, columns = n, lead = Lead(m), u_lead = Lead(m), vt_lead = Lead(vt_rows), lwork = -1;
  auto matrix = Room<T>(m * n), u = Room<T>(m * u_columns), vt = Room<T>(vt_rows * n), work = Room<T>(1);
  auto rwork = Room<Real<T>>(kIsComplex<T> ? std::max(5 * k * k + 7 * k, 2 * larger * k + 2 * k * k + k) : 0);
  auto iwork = Room<Int>(8 * k);
  const auto call = [&] {
    T *A = matrix.data(), *U = u.data(), *V = vt.data();
    if constexpr (kIsComplex<T>) {
      using Divide = void (*)(char*, Int*, Int*, T*, Int*, Real<T>*, T*, Int*, T*, Int*, T*, Int*, Real<T>*, Int*, Int*);
      using Iterate = void (*)(char*, char*, Int*, Int*, T*, Int*, Real<T>*, T*, Int*, T*, Int*, T*, Int*, Real<T>*, Int*);
      if (divides) {
        reinterpret_cast<Divide>(routine)(&mode, &rows, &columns, A, &lead, values, U, &u_lead, V, &vt_lead, work.data(), &lwork,
                                          rwork.data(), iwork.data(), info);
      } else {
        reinterpret_cast<Iterate>(routine)(&mode, &mode, &rows, &columns, A, &lead, values, U, &u_lead, V, &vt_lead, work.data(), &lwork,
                                           rwork.data(), info);
      }
    } else {
      using Divide = void (*)(char*, Int*, Int*, T*, Int*, T*, T*, Int*, T*, Int*, T*, Int*, Int*, Int*);
      using Iterate = void (*)(char*, char*, Int*, Int*, T*, Int*, T*, T*, Int*, T*, Int*, T*, Int*, Int*);
      if (divides) {
        reinterpret_cast<Divide>(routine)(&mode, &rows, &columns, A, &lead, values, U, &u_lead, V, &vt_lead, work.data(), &lwork,
                                          iwork.data(), info);
      } else {
        reinterpret_cast<Iterate>(routine)(&mode, &mode, &rows, &columns, A, &lead, values, U, &u_lead, V, &vt_lead, work.data(), &lwork,
                                           info);
      }
    }
  };
  if (batch == 0) return;
  // The routines leave the vectors of a matrix without elements as they are.
  for (int64_t i = 0; k == 0 && mode == 'A' && i < larger; ++i) (m ? u : vt)[i * larger + i] = T(1);
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += m * n, kept += m * n, values += k, ++info) {
    ToColumns(a, m, n, matrix.data());
    call();
    std::copy(a, a + m * n, kept);
    ToRows(u.data(), m, u_columns, u_rows);
    ToRows(vt.data(), vt_rows, n, vt_out);
    u_rows += m * u_columns;
    vt_out += vt_rows * n;
  }
}

// Eigenvectors as complex columns. LAPACK returns those of real matrices as real parts and imaginary parts, in adjacent columns if the
// eigenvalues are a conjugate pair.
template <class T>
void Unpack(const std::vector<T>& packed, const T* imaginary, int64_t n, Complex<T>* rows) {
  for (int64_t j = 0; j < n; ++j) {
    if constexpr (!kIsComplex<T>) {
      if (imaginary[j] != 0 && j + 1 < n) {
        for (int64_t i = 0; i < n; ++i) {
          const Complex<T> entry(packed[j * n + i], packed[(j + 1) * n + i]);
          rows[i * n + j] = entry;
          rows[i * n + j + 1] = std::conj(entry);
        }
        ++j;
        continue;
      }
    }
    for (int64_t i = 0; i < n; ++i) rows[i * n + j] = packed[j * n + i];
  }
}

// attributes: batch, n, and whether left and right eigenvectors are computed (V or N). a -> eigenvalues (for real matrices their real and
// their imaginary parts), left and right eigenvectors, info. Results that are not computed are zero.
template <class T>
void Geev(void* routine, void** pointers, const int64_t* attributes) {
  const int64_t batch = attributes[0], n = attributes[1];
  char left = static_cast<char>(attributes[2]), right = static_cast<char>(attributes[3]);
  const T* a = static_cast<T*>(pointers[0]);
  T* values = static_cast<T*>(pointers[1]);
  T* imaginary = kIsComplex<T> ? nullptr : static_cast<T*>(pointers[2]);
  void** others = pointers + (kIsComplex<T> ? 2 : 3);
  Complex<T>* left_rows = static_cast<Complex<T>*>(others[0]);
  Complex<T>* right_rows = static_cast<Complex<T>*>(others[1]);
  Int* info = static_cast<Int*>(others[2]);
  Int order = n, lead = Lead(n), lwork = -1;
  auto matrix = Room<T>(n * n), vl = Room<T>(n * n), vr = Room<T>(n * n), work = Room<T>(1);
  auto rwork = Room<Real<T>>(2 * n);
  const auto call = [&] {
    if constexpr (kIsComplex<T>) {
      using Routine = void (*)(char*, char*, Int*, T*, Int*, T*, T*, Int*, T*, Int*, T*, Int*, Real<T>*, Int*);
      reinterpret_cast<Routine>(routine)(&left, &right, &order, matrix.data(), &lead, values, vl.data(), &lead, vr.data(), &lead,
                                         work.data(), &lwork, rwork.data(), info);
    } else {
      using Routine = void (*)(char*, char*, Int*, T*, Int*, T*, T*, T*, Int*, T*, Int*, T*, Int*, Int*);
      reinterpret_cast<Routine>(routine)(&left, &right, &order, matrix.data(), &lead, values, imaginary, vl.data(), &lead, vr.data(), &lead,
                                         work.data(), &lwork, info);
    }
  };
  if (batch == 0) return;
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += n * n, left_rows += n * n, right_rows += n * n, ++info) {
    ToColumns(a, n, n, matrix.data());
    call();
    Unpack(vl, imaginary, n, left_rows);
    Unpack(vr, imaginary, n, right_rows);
    values += n;
    if constexpr (!kIsComplex<T>) imaginary += n;
  }
}

// attributes: batch, n, mode (V or N). a -> Schur form, Schur vectors, eigenvalues (for real matrices their real and their imaginary
// parts), the number of selected ones (none), info.
template <class T>
void Gees(void* routine, void** pointers, const int64_t* attributes) {
  const int64_t batch = attributes[0], n = attributes[1];
  char mode = static_cast<char>(attributes[2]), sort = 'N';
  const T* a = static_cast<T*>(pointers[0]);
  T* form = static_cast<T*>(pointers[1]);
  T* vectors = static_cast<T*>(pointers[2]);
  T* values = static_cast<T*>(pointers[3]);
  T* imaginary = kIsComplex<T> ? nullptr : static_cast<T*>(pointers[4]);
  void** others = pointers + (kIsComplex<T> ? 4 : 5);
  Int* selected = static_cast<Int*>(others[0]);
  Int* info = static_cast<Int*>(others[1]);
  Int order = n, lead = Lead(n), lwork = -1;
  auto matrix = Room<T>(n * n), vs = Room<T>(n * n), work = Room<T>(1);
  auto rwork = Room<Real<T>>(n);
  auto flags = Room<Int>(n);
  const auto call = [&] {
    if constexpr (kIsComplex<T>) {
      using Routine = void (*)(char*, char*, void*, Int*, T*, Int*, Int*, T*, T*, Int*, T*, Int*, Real<T>*, Int*, Int*);
      reinterpret_cast<Routine>(routine)(&mode, &sort, nullptr, &order, matrix.data(), &lead, selected, values, vs.data(), &lead,
                                         work.data(), &lwork, rwork.data(), flags.data(), info);
    } else {
      using Routine = void (*)(char*, char*, void*, Int*, T*, Int*, Int*, T*, T*, T*, Int*, T*, Int*, Int*, Int*);
      reinterpret_cast<Routine>(routine)(&mode, &sort, nullptr, &order, matrix.data(), &lead, selected, values, imaginary, vs.data(), &lead,
                                         work.data(), &lwork, flags.data(), info);
    }
  };
  if (batch == 0) return;
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += n * n, form += n * n, vectors += n * n, values += n, ++selected, ++info) {
    ToColumns(a, n, n, matrix.data());
    call();
    ToRows(matrix.data(), n, n, form);
    ToRows(vs.data(), n, n, vectors);
    if constexpr (!kIsComplex<T>) imaginary += n;
  }
}

// attributes: batch, n, low, high (from 1). a -> Hessenberg form and reflectors, scales, info.
template <class T>
void Gehrd(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(Int*, Int*, Int*, T*, Int*, T*, T*, Int*, Int*);
  const int64_t batch = attributes[0], n = attributes[1];
  const T* a = static_cast<T*>(pointers[0]);
  T* form = static_cast<T*>(pointers[1]);
  T* tau = static_cast<T*>(pointers[2]);
  Int* info = static_cast<Int*>(pointers[3]);
  Int order = n, low = attributes[2], high = attributes[3], lead = Lead(n), lwork = -1;
  auto matrix = Room<T>(n * n), work = Room<T>(1);
  const auto call = [&] {
    reinterpret_cast<Routine>(routine)(&order, &low, &high, matrix.data(), &lead, tau, work.data(), &lwork, info);
  };
  if (batch == 0) return;
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += n * n, form += n * n, tau += std::max<int64_t>(n - 1, 0), ++info) {
    ToColumns(a, n, n, matrix.data());
    call();
    ToRows(matrix.data(), n, n, form);
  }
}

// attributes: batch, n, uplo (L or U). A Hermitian matrix -> reflectors, diagonal, off-diagonal, scales, info.
template <class T>
void Sytrd(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(char*, Int*, T*, Int*, Real<T>*, Real<T>*, T*, T*, Int*, Int*);
  const int64_t batch = attributes[0], n = attributes[1], off = std::max<int64_t>(n - 1, 0);
  char uplo = static_cast<char>(attributes[2]);
  const T* a = static_cast<T*>(pointers[0]);
  T* form = static_cast<T*>(pointers[1]);
  Real<T>* diagonal = static_cast<Real<T>*>(pointers[2]);
  Real<T>* beside = static_cast<Real<T>*>(pointers[3]);
  T* tau = static_cast<T*>(pointers[4]);
  Int* info = static_cast<Int*>(pointers[5]);
  Int order = n, lead = Lead(n), lwork = -1;
  auto matrix = Room<T>(n * n), work = Room<T>(1);
  const auto call = [&] {
    reinterpret_cast<Routine>(routine)(&uplo, &order, matrix.data(), &lead, diagonal, beside, tau, work.data(), &lwork, info);
  };
  if (batch == 0) return;
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += n * n, form += n * n, diagonal += n, beside += off, tau += off, ++info) {
    ToColumns(a, n, n, matrix.data());
    call();
    ToRows(matrix.data(), n, n, form);
  }
}

// attributes: batch, n, uplo (L or U). A symmetric or Hermitian matrix -> its factors L and D (or U and D), pivots, info.
template <class T>
void Sytrf(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(char*, Int*, T*, Int*, Int*, T*, Int*, Int*);
  const int64_t batch = attributes[0], n = attributes[1];
  char uplo = static_cast<char>(attributes[2]);
  const T* a = static_cast<T*>(pointers[0]);
  T* factors = static_cast<T*>(pointers[1]);
  Int* pivots = static_cast<Int*>(pointers[2]);
  Int* info = static_cast<Int*>(pointers[3]);
  Int order = n, lead = Lead(n), lwork = -1;
  auto matrix = Room<T>(n * n), work = Room<T>(1);
  const auto call = [&] {
    reinterpret_cast<Routine>(routine)(&uplo, &order, matrix.data(), &lead, pivots, work.data(), &lwork, info);
  };
  if (batch == 0) return;
  call();
  work.resize(lwork = Size(work[0]));
  for (int64_t b = 0; b < batch; ++b, a += n * n, factors += n * n, pivots += n, ++info) {
    ToColumns(a, n, n, matrix.data());
    call();
    ToRows(matrix.data(), n, n, factors);
  }
}

// Whether pivots are some that Sytrf returns: the solution would read and write outside of the matrix by others.
bool ArePivots(const Int* pivots, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const Int pivot = pivots[k];
    if (pivot == 0 || pivot > n || pivot < -n) return false;
    if (pivot < 0 && (++k == n || pivots[k] != pivot)) return false;
  }
  return true;
}

// attributes: batch, n, columns of b, uplo (L or U). Factors, pivots, b -> the solution, NaN if no factorization has the pivots.
template <class T>
void Sytrs(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(char*, Int*, Int*, T*, Int*, Int*, T*, Int*, Int*);
  const int64_t batch = attributes[0], n = attributes[1], columns = attributes[2];
  char uplo = static_cast<char>(attributes[3]);
  const T* factors = static_cast<T*>(pointers[0]);
  Int* pivots = static_cast<Int*>(pointers[1]);
  const T* given = static_cast<T*>(pointers[2]);
  T* solution = static_cast<T*>(pointers[3]);
  Int order = n, count = columns, lead = Lead(n), info = 0;
  auto matrix = Room<T>(n * n), right = Room<T>(n * columns);
  for (int64_t b = 0; b < batch; ++b, factors += n * n, pivots += n, given += n * columns, solution += n * columns) {
    if (!ArePivots(pivots, n)) {
      std::fill_n(solution, n * columns, T(std::numeric_limits<Real<T>>::quiet_NaN()));
      continue;
    }
    ToColumns(factors, n, n, matrix.data());
    ToColumns(given, n, columns, right.data());
    reinterpret_cast<Routine>(routine)(&uplo, &order, &count, matrix.data(), &lead, pivots, right.data(), &lead, &info);
    ToRows(right.data(), n, columns, solution);
  }
}

// attributes: batch, n, columns of b. The diagonals below, at and above the main one, each of n elements (the first of `lower` and the last of
// `upper` lie outside the matrix), and b -> the diagonals, the solution, info.
template <class T>
void Gtsv(void* routine, void** pointers, const int64_t* attributes) {
  using Routine = void (*)(Int*, Int*, T*, T*, T*, T*, Int*, Int*);
  const int64_t batch = attributes[0], n = attributes[1], columns = attributes[2];
  const T *lower = static_cast<T*>(pointers[0]), *diagonal = static_cast<T*>(pointers[1]), *upper = static_cast<T*>(pointers[2]);
  const T* given = static_cast<T*>(pointers[3]);
  for (int i = 0; i < 3; ++i) std::copy_n(static_cast<T*>(pointers[i]), batch * n, static_cast<T*>(pointers[4 + i]));
  T* solution = static_cast<T*>(pointers[7]);
  Int* info = static_cast<Int*>(pointers[8]);
  Int order = n, count = columns, lead = Lead(n);
  auto matrix = Room<T>(n * columns), below = Room<T>(n), at = Room<T>(n), above = Room<T>(n);
  for (int64_t b = 0; b < batch; ++b, given += n * columns, solution += n * columns, ++info) {
    // Elimination overwrites its input.
    std::copy_n(lower + b * n, n, below.data());
    std::copy_n(diagonal + b * n, n, at.data());
    std::copy_n(upper + b * n, n, above.data());
    ToColumns(given, n, columns, matrix.data());
    reinterpret_cast<Routine>(routine)(&order, &count, below.data() + (n > 0), at.data(), above.data(), matrix.data(), &lead, info);
    ToRows(matrix.data(), n, columns, solution);
  }
}

// The status of a run that must end, as for other host functions.
int32_t Guarded(void (*function)(void*, void**, const int64_t*), void* routine, void** pointers, const int64_t* attributes) {
  try {
    function(routine, pointers, attributes);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

}  // namespace

#define TRIVIUM_FUNCTION(name, letter, Function, T)                                                                            \
  TRIVIUM_EXPORT int32_t trivium_##name##_##letter(void* routine, void** pointers, const int64_t* attributes) {                \
    return Guarded(Function<T>, routine, pointers, attributes);                                                                \
  }
#define TRIVIUM_FUNCTIONS(name, Function)                       \
  TRIVIUM_FUNCTION(name, s, Function, float)                    \
  TRIVIUM_FUNCTION(name, d, Function, double)                   \
  TRIVIUM_FUNCTION(name, c, Function, std::complex<float>)      \
  TRIVIUM_FUNCTION(name, z, Function, std::complex<double>)

TRIVIUM_FUNCTIONS(potrf, Potrf)
TRIVIUM_FUNCTIONS(trsm, Trsm)
TRIVIUM_FUNCTIONS(getrf, Getrf)
TRIVIUM_FUNCTIONS(geqrf, Geqrf)
TRIVIUM_FUNCTIONS(geqp3, Geqp3)
TRIVIUM_FUNCTIONS(orgqr, Orgqr)
TRIVIUM_FUNCTIONS(ormqr, Ormqr)
TRIVIUM_FUNCTIONS(syevd, Syevd)
TRIVIUM_FUNCTIONS(gesdd, Svd)
TRIVIUM_FUNCTIONS(gesvd, Svd)
TRIVIUM_FUNCTIONS(geev, Geev)
TRIVIUM_FUNCTIONS(gees, Gees)
TRIVIUM_FUNCTIONS(gehrd, Gehrd)
TRIVIUM_FUNCTIONS(sytrd, Sytrd)
TRIVIUM_FUNCTIONS(gtsv, Gtsv)
TRIVIUM_FUNCTIONS(sytrf, Sytrf)
TRIVIUM_FUNCTIONS(sytrs, Sytrs)
TRIVIUM_FUNCTION(hetrf, c, Sytrf, std::complex<float>)
TRIVIUM_FUNCTION(hetrf, z, Sytrf, std::complex<double>)
TRIVIUM_FUNCTION(hetrs, c, Sytrs, std::complex<float>)
TRIVIUM_FUNCTION(hetrs, z, Sytrs, std::complex<double>)
