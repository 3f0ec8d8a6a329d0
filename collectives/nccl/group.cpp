#include "collectives/nccl/group.h"

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "collectives/group.h"
#include "collectives/header_log.h"

namespace tutti {

namespace {

// Compares the posted headers of all ranks over a control group. NCCL would hang if they differ.
class HeaderCheck {
 public:
  HeaderCheck(Group& control, const CollectiveHeader& header);

  // True once all ranks have posted the same header. Never blocks. Throws CollectiveError with both.
  bool done();

 private:
  Group& control_;
  CollectiveHeader header_;
  at::Tensor mine_;  // sequence, kind, bytes, cut; int64
  at::Tensor all_;   // of every rank
  WorkPtr work_;     // null once compared
};

constexpr int64_t kFields = 4;

void write_fields(const CollectiveHeader& header, int64_t* out) {
  out[0] = static_cast<int64_t>(header.sequence);
  out[1] = static_cast<int64_t>(header.kind);
  out[2] = static_cast<int64_t>(header.bytes);
  out[3] = static_cast<int64_t>(header.cut);
}

CollectiveHeader read_fields(const int64_t* in) {
  return {.sequence = static_cast<uint64_t>(in[0]),
          .kind = static_cast<CollectiveKind>(in[1]),
          .bytes = static_cast<uint64_t>(in[2]),
          .cut = static_cast<uint64_t>(in[3])};
}

HeaderCheck::HeaderCheck(Group& control, const CollectiveHeader& header)
    : control_(control),
      header_(header),
      mine_(at::empty({kFields}, at::kLong)),
      all_(at::empty({kFields * control.size()}, at::kLong)) {
  write_fields(header, mine_.mutable_data_ptr<int64_t>());
  work_ = control.all_gather(mine_, all_, header.label);
}

bool HeaderCheck::done() {
  if (work_ == nullptr) return true;
  if (!work_->done()) return false;
  work_.reset();
  for (int rank = 0; rank < control_.size(); ++rank) {
    const CollectiveHeader theirs = read_fields(all_.const_data_ptr<int64_t>() + kFields * rank);
    if (matches(header_, theirs)) continue;
    const int self = control_.world_rank(control_.rank());
    throw CollectiveError(mismatch_text(self, header_, control_.world_rank(rank), theirs));
  }
  return true;
}

// Broadcasts rank 0's id.
ncclUniqueId share_id(Group& control) {
  ncclUniqueId id{};
  if (control.rank() == 0) check_nccl(ncclGetUniqueId(&id), "to make an id");
  const at::Tensor bytes = at::zeros({sizeof(id.internal)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), id.internal, sizeof(id.internal));
  const WorkPtr work = control.broadcast(bytes, 0, "NCCL's id");
  while (!work->done()) std::this_thread::yield();
  std::memcpy(id.internal, bytes.const_data_ptr(), sizeof(id.internal));
  return id;
}

}  // namespace

void check_nccl(ncclResult_t result, const std::string& doing) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CollectiveError("NCCL failed " + doing + ": " + ncclGetErrorString(result));
}

NcclCommunicator::NcclCommunicator(Group& control)
    : rank_(control.rank()), size_(control.size()), stream_(c10::cuda::getStreamFromPool(true)) {
  check_nccl(ncclCommInitRank(&comm_, size_, share_id(control), rank_), "to connect the ranks");
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ != nullptr) ncclCommDestroy(comm_);
}

void NcclCommunicator::check() const {
  if (comm_ == nullptr) throw CollectiveError("this NCCL group was aborted");
  ncclResult_t state = ncclSuccess;
  check_nccl(ncclCommGetAsyncError(comm_, &state), "to report its state");
  check_nccl(state, "in the background");
}

void NcclCommunicator::abort() {
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
}

namespace {

ncclDataType_t nccl_type(at::ScalarType type) {
  static const std::map<at::ScalarType, ncclDataType_t> types{
      {at::kFloat, ncclFloat32}, {at::kDouble, ncclFloat64}, {at::kBFloat16, ncclBfloat16},
      {at::kHalf, ncclFloat16},  {at::kInt, ncclInt32},      {at::kLong, ncclInt64}};
  const auto found = types.find(type);
  TUTTI_ASSERT(found != types.end(), std::string("NCCL has no sums of ") + c10::toString(type));
  return found->second;
}

class NcclWork final : public Work {
 public:
  NcclWork(NcclCommunicator& communicator, Group& control, const CollectiveHeader& header)
      : communicator_(communicator), header_(header), check_(control, header) {}

  void record_launch() { event_.record(communicator_.stream()); }

  bool done() override {
    communicator_.check();
    return headers_match() && event_.query();
  }
  const CollectiveHeader& header() const override { return header_; }
  bool finite() const override {
    return std::ranges::all_of(summed_,
                               [](const at::Tensor& sum) { return at::isfinite(sum).all().item<bool>(); });
  }

  // Sets the tensors that finite() checks.
  void check_finite(std::vector<at::Tensor> summed) { summed_ = std::move(summed); }

 private:
  bool headers_match() try { return check_.done(); } catch (const CollectiveError&) {
    communicator_.abort();
    throw;
  }

  NcclCommunicator& communicator_;
  CollectiveHeader header_;
  HeaderCheck check_;
  std::vector<at::Tensor> summed_;
  at::cuda::CUDAEvent event_;
};

// Calls `start(rank, run)` for all parts, as one operation of NCCL's.
template <class Start>
ncclResult_t for_all_runs(const Cut& cut, Start start) {
  check_nccl(ncclGroupStart(), "to start a group");
  ncclResult_t result = ncclSuccess;
  for (int rank = 0; rank < cut.ranks(); ++rank)
    for (const CutRun& run : cut.runs(rank))
      if (result == ncclSuccess) result = start(rank, run);
  const ncclResult_t ended = ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

std::byte* bytes_of(const at::Tensor& tensor, int64_t first) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr()) + first * tensor.element_size();
}

// A run of this rank's part.
std::byte* own_bytes(const CollectiveJob& job, const CutRun& run) {
  return bytes_of(job.part, job.in_place() ? run.whole : run.part);
}

CutRun even_run(const CollectiveJob& job, int rank) {
  return {job.cut->packed_begin(rank), 0, job.cut->part_size(rank)};
}

// This rank's part of the sum, piece by piece.
std::vector<at::Tensor> sums_of(const CollectiveJob& job, int self) {
  if (!job.in_place()) return {job.part};
  std::vector<at::Tensor> sums;
  for (const CutRun& run : job.cut->runs(self)) sums.push_back(job.whole.narrow(0, run.whole, run.count));
  return sums;
}

int rank_in(ncclComm_t comm) {
  int self = 0;
  check_nccl(ncclCommUserRank(comm, &self), "to name its rank");
  return self;
}

ncclResult_t scatter(const CollectiveJob& job, ncclComm_t comm, cudaStream_t stream) {
  const ncclDataType_t type = nccl_type(job.whole.scalar_type());
  const int self = rank_in(comm);
  if (job.cut->is_even())
    return ncclReduceScatter(job.whole.const_data_ptr(), own_bytes(job, even_run(job, self)),
                             job.cut->part_size(self), type, ncclSum, comm, stream);
  return for_all_runs(*job.cut, [&](int rank, const CutRun& run) {
    void* const out = rank == self ? own_bytes(job, run) : nullptr;
    return ncclReduce(bytes_of(job.whole, run.whole), out, run.count, type, ncclSum, rank, comm, stream);
  });
}

ncclResult_t gather(const CollectiveJob& job, ncclComm_t comm, cudaStream_t stream) {
  const int self = rank_in(comm);
  const auto item = static_cast<int64_t>(job.part.element_size());
  if (job.cut->is_even())
    return ncclAllGather(own_bytes(job, even_run(job, self)), job.whole.mutable_data_ptr(),
                         job.cut->part_size(self) * item, ncclUint8, comm, stream);
  return for_all_runs(*job.cut, [&](int rank, const CutRun& run) {
    const void* const input = rank == self ? own_bytes(job, run) : nullptr;
    return ncclBroadcast(input, bytes_of(job.whole, run.whole), run.count * item, ncclUint8, rank, comm,
                         stream);
  });
}

}  // namespace

NcclGroup::NcclGroup(Group& control)
    : control_(control), device_(c10::kCUDA, c10::cuda::current_device()), communicator_(control) {}

at::Tensor NcclGroup::allocate(int64_t bytes) {
  return at::zeros({bytes}, at::TensorOptions().dtype(at::kByte).device(device_));
}

WorkPtr NcclGroup::all_reduce(at::Tensor inout, const std::string& label) {
  check_flat(inout);
  return post(CollectiveKind::kAllReduce, {.whole = inout}, label,
              [](const CollectiveJob& job, ncclComm_t comm, cudaStream_t stream) {
                void* const data = job.whole.mutable_data_ptr();
                return ncclAllReduce(data, data, job.whole.numel(), nccl_type(job.whole.scalar_type()),
                                     ncclSum, comm, stream);
              });
}

WorkPtr NcclGroup::reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_reduce_scatter(*this, input, out, *cut);
  return post(CollectiveKind::kReduceScatter, {.whole = input, .part = out, .cut = cut}, label, scatter);
}

WorkPtr NcclGroup::all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_all_gather(*this, input, out, *cut);
  return post(CollectiveKind::kAllGather, {.whole = out, .part = input, .cut = cut}, label, gather);
}

WorkPtr NcclGroup::broadcast(at::Tensor inout, int root, const std::string& label) {
  check_flat(inout);
  TUTTI_ASSERT(root >= 0 && root < size(), "broadcast from a rank that is not in the group");
  return post(CollectiveKind::kBroadcast, {.whole = inout, .root = root}, label,
              [](const CollectiveJob& job, ncclComm_t comm, cudaStream_t stream) {
                void* const data = job.whole.mutable_data_ptr();
                return ncclBroadcast(data, data, job.whole.nbytes(), ncclUint8, job.root, comm, stream);
              });
}

// NCCL has no barrier. An all-reduce of one number ends only after all ranks have posted it.
WorkPtr NcclGroup::barrier(const std::string& label) {
  return post(CollectiveKind::kBarrier, {}, label,
              [](const CollectiveJob& job, ncclComm_t comm, cudaStream_t stream) {
                void* const token = job.whole.mutable_data_ptr();
                return ncclAllReduce(token, token, 1, ncclInt32, ncclSum, comm, stream);
              });
}

// Gives a job without destination, and a barrier, memory to receive into.
void NcclGroup::complete(CollectiveJob& job) const {
  if (job.cut && !job.part.defined()) job.part = at::empty({job.cut->part_size(rank())}, job.whole.options());
  if (job.cut && !job.whole.defined()) job.whole = at::empty({job.cut->extent()}, job.part.options());
  if (job.header.kind == CollectiveKind::kBarrier)
    job.whole = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(device_));
}

WorkPtr NcclGroup::post(CollectiveKind kind, CollectiveJob job, const std::string& label,
                        const Launch& launch) {
  communicator_.check();
  const c10::cuda::CUDAGuard on_device(device_);
  const c10::cuda::CUDAStream stream = communicator_.stream();

  job.header = log_.next(kind, job, label);
  auto work = std::make_unique<NcclWork>(communicator_, control_, job.header);
  if (kind == CollectiveKind::kReduceScatter && job.part.defined()) work->check_finite(sums_of(job, rank()));
  if (kind == CollectiveKind::kAllReduce) work->check_finite({job.whole});
  complete(job);
  at::cuda::CUDAEvent ready;
  ready.record();
  ready.block(stream);
  check_nccl(launch(job, communicator_.comm(), stream.stream()), "to start " + work->header().text());
  for (const at::Tensor& tensor : {job.whole, job.part}) {
    if (tensor.defined()) c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
  }
  work->record_launch();
  return work;
}

}  // namespace tutti
