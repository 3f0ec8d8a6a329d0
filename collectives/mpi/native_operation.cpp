#include "collectives/mpi/native_operation.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "collectives/header_log.h"
#include "collectives/ordered_sum.h"
#include "runtime/error.h"
#include "tensors/finite.h"

namespace tutti {
namespace {

// MPI's counts are int.
constexpr int64_t kMostItems = int64_t{1} << 30;

template <c10::ScalarType dtype>
void add(void* in, void* inout, int* count, MPI_Datatype*) {
  const Summand summands[] = {{{0, 1}, in}, {{1, 2}, inout}};
  void* const output = inout;
  ordered_sum(dtype, summands, {&output, 1}, *count);
}

int checked_count(int64_t count) {
  TUTTI_ASSERT(count <= std::numeric_limits<int>::max(), "more items than MPI can count");
  return static_cast<int>(count);
}

}  // namespace

NativeSums::NativeSums() {
  check_mpi(MPI_Type_contiguous(2, MPI_BYTE, &two_bytes_), "MPI_Type_contiguous");
  check_mpi(MPI_Type_commit(&two_bytes_), "MPI_Type_commit");
  check_mpi(MPI_Op_create(add<c10::ScalarType::BFloat16>, 1, &bfloat16_), "MPI_Op_create");
  check_mpi(MPI_Op_create(add<c10::ScalarType::Half>, 1, &float16_), "MPI_Op_create");
}

NativeSums::~NativeSums() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  MPI_Op_free(&float16_);
  MPI_Op_free(&bfloat16_);
  MPI_Type_free(&two_bytes_);
}

NativeSums::Sum NativeSums::of(c10::ScalarType dtype) const {
  switch (dtype) {
    case c10::ScalarType::Float:
      return {MPI_FLOAT, MPI_SUM};
    case c10::ScalarType::Double:
      return {MPI_DOUBLE, MPI_SUM};
    case c10::ScalarType::Int:
      return {MPI_INT32_T, MPI_SUM};
    case c10::ScalarType::Long:
      return {MPI_INT64_T, MPI_SUM};
    case c10::ScalarType::BFloat16:
      return {two_bytes_, bfloat16_};
    case c10::ScalarType::Half:
      return {two_bytes_, float16_};
    default:
      TUTTI_ASSERT(false, std::string("no sums of ") + c10::toString(dtype));
  }
}

NativeOperation::NativeOperation(MpiEndpoint& endpoint, const NativeSums& sums, CollectiveJob job)
    : Operation(std::move(job)), endpoint_(endpoint), sums_(sums) {
  const int64_t shape = shape_of(header());
  shapes_ = {shape, -shape};
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(
      MPI_Iallreduce(MPI_IN_PLACE, shapes_.data(), 2, MPI_INT64_T, MPI_MAX, endpoint.guards(), &request),
      "MPI_Iallreduce");
  guard_.add_collective(request);
}

bool NativeOperation::advance() {
  if (!started_) return may_start() && (start(), true);
  if (!requests_.done()) return false;
  if (header().kind == CollectiveKind::kAllGather && packed_.defined()) unpack_all();
  if (header().kind == CollectiveKind::kReduceScatter && in_place())
    unpack(endpoint_.layout().rank(), 0, static_cast<int64_t>(dense_part_.nbytes()),
           static_cast<const std::byte*>(dense_part_.const_data_ptr()));
  check_sum();
  finish();
  return true;
}

void NativeOperation::check_sum() {
  if (header().kind == CollectiveKind::kReduceScatter && part())
    note_finite(all_finite(in_place() ? dense_part_ : job().part));
  if (header().kind == CollectiveKind::kAllReduce) note_finite(all_finite(job().whole));
}

// Data operations must start in the same order on all ranks.
bool NativeOperation::may_start() {
  if (!guard_.done()) return false;
  const bool all_alike = shapes_[0] == -shapes_[1];
  return all_alike && endpoint_.native_started() == header().sequence;
}

void NativeOperation::start() {
  started_ = true;
  endpoint_.note_native_start();
  switch (header().kind) {
    case CollectiveKind::kAllReduce:
      return all_reduce(endpoint_.messages());
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(endpoint_.messages());
    case CollectiveKind::kAllGather:
      return all_gather(endpoint_.messages());
    case CollectiveKind::kBroadcast:
      return broadcast(endpoint_.messages());
    case CollectiveKind::kBarrier:
      return;
  }
}

void NativeOperation::all_reduce(MPI_Comm comm) {
  const at::Tensor& whole = job().whole;
  const auto [type, op] = sums_.of(whole.scalar_type());
  auto* data = static_cast<std::byte*>(whole.data_ptr());
  for (int64_t at = 0; at < whole.numel(); at += kMostItems) {
    const auto count = static_cast<int>(std::min(kMostItems, whole.numel() - at));
    MPI_Request request = MPI_REQUEST_NULL;
    void* const part = data + at * static_cast<int64_t>(whole.element_size());
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, part, count, type, op, comm, &request), "MPI_Iallreduce");
    requests_.add_collective(request);
  }
}

void NativeOperation::count_parts() {
  for (int rank = 0; rank < cut().ranks(); ++rank) {
    counts_.push_back(checked_count(cut().part_size(rank)));
    begins_.push_back(checked_count(cut().packed_begin(rank)));
  }
}

void NativeOperation::reduce_scatter(MPI_Comm comm) {
  count_parts();
  at::Tensor input = job().whole;
  const auto [type, op] = sums_.of(input.scalar_type());
  if (!cut().is_packed()) {
    input = packed_ = at::empty({cut().size()}, input.options());
    for (int rank = 0; rank < cut().ranks(); ++rank)
      pack(rank, 0, counts_[rank] * item_bytes(), packed_part(rank));
  }
  at::Tensor out = job().part;
  if (!out.defined() || in_place())
    out = dense_part_ = at::empty({counts_[endpoint_.layout().rank()]}, input.options());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ireduce_scatter(input.data_ptr(), out.data_ptr(), counts_.data(), type, op, comm, &request),
            "MPI_Ireduce_scatter");
  requests_.add_collective(request);
}

void NativeOperation::all_gather(MPI_Comm comm) {
  count_parts();
  const int rank = endpoint_.layout().rank();
  at::Tensor out = job().whole;
  if (!out.defined() || !cut().is_packed()) out = packed_ = at::empty({cut().size()}, job().part.options());
  const void* input = part();
  if (in_place() && packed_.defined()) pack(rank, 0, counts_[rank] * item_bytes(), packed_part(rank));
  const bool is_there = !packed_.defined() && part() == whole() + begins_[rank] * item_bytes();
  if (in_place() || is_there) input = MPI_IN_PLACE;
  MPI_Datatype item = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(static_cast<int>(item_bytes()), MPI_BYTE, &item), "MPI_Type_contiguous");
  check_mpi(MPI_Type_commit(&item), "MPI_Type_commit");
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Iallgatherv(input, counts_[rank], item, out.data_ptr(), counts_.data(), begins_.data(),
                                   item, comm, &request);
  MPI_Type_free(&item);  // MPI keeps it until the collective has ended
  check_mpi(code, "MPI_Iallgatherv");
  requests_.add_collective(request);
}

std::byte* NativeOperation::packed_part(int rank) const {
  return static_cast<std::byte*>(packed_.data_ptr()) + begins_[rank] * item_bytes();
}

void NativeOperation::unpack_all() {
  for (int rank = 0; whole() && rank < cut().ranks(); ++rank)
    unpack(rank, 0, counts_[rank] * item_bytes(), packed_part(rank));
}

void NativeOperation::broadcast(MPI_Comm comm) {
  auto* data = static_cast<std::byte*>(job().whole.data_ptr());
  const auto bytes = static_cast<int64_t>(job().whole.nbytes());
  for (int64_t at = 0; at < bytes; at += kMostItems) {
    const auto count = static_cast<int>(std::min(kMostItems, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(data + at, count, MPI_BYTE, job().root, comm, &request), "MPI_Ibcast");
    requests_.add_collective(request);
  }
}

}  // namespace tutti
