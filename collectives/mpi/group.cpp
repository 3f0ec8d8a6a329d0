#include "collectives/mpi/group.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "collectives/group.h"
#include "collectives/local/group.h"
#include "collectives/mpi/operation.h"
#include "collectives/mpi/pieced_operation.h"
#include "collectives/mpi/reduce_operation.h"
#include "runtime/error.h"

namespace tutti {

namespace {

constexpr char kHeadersPacket = 'T';  // followed by headers
constexpr char kAlarmPacket = 'A';    // followed by the reason
constexpr int kHeaderTag = 0;

}  // namespace

HeaderExchange::HeaderExchange(const MpiComm& comm, std::vector<int> ranks)
    : comm_(comm.duplicate()), ranks_(std::move(ranks)) {
  MPI_Comm_rank(comm_.get(), &rank_);
}

std::vector<int> HeaderExchange::neighbours() const {
  const int size = static_cast<int>(ranks_.size());
  std::set<int> ranks;
  for (int distance = 1; distance < size; distance *= 2) {
    ranks.insert((rank_ + distance) % size);
    ranks.insert((rank_ + size - distance) % size);
  }
  ranks.erase(rank_);
  return {ranks.begin(), ranks.end()};
}

void HeaderExchange::send(const std::string& packet) {
  outgoing_.forget_sent();
  for (int to : neighbours()) outgoing_.send(comm_.get(), packet, to, kHeaderTag);
}

void HeaderExchange::send_headers(const HeaderLog& log) {
  const std::vector<CollectiveHeader> headers = log.last(kHeaders);
  std::string packet(1, kHeadersPacket);
  packet.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(CollectiveHeader));
  send(packet);
}

void HeaderExchange::send_alarm(const std::string& text) {
  if (alarm_sent_) return;
  alarm_sent_ = true;
  send(kAlarmPacket + text);
  // Tries to deliver the messages now: the caller may never use MPI again.
  for (int attempt = 0; attempt < 1000 && !outgoing_.empty(); ++attempt) outgoing_.forget_sent();
}

void HeaderExchange::check_received(const HeaderLog& log) {
  while (const auto incoming = receive_any(comm_.get(), kHeaderTag)) handle(incoming->bytes, incoming->from);
  for (const auto& [from, headers] : headers_) compare(from, headers, log);
}

void HeaderExchange::handle(const std::string& packet, int from) {
  if (packet.front() == kAlarmPacket) throw CollectiveError(packet.substr(1));
  std::vector<CollectiveHeader> headers((packet.size() - 1) / sizeof(CollectiveHeader));
  std::memcpy(headers.data(), packet.data() + 1, headers.size() * sizeof(CollectiveHeader));
  headers_[from] = std::move(headers);
}

void HeaderExchange::compare(int from, const std::vector<CollectiveHeader>& theirs,
                             const HeaderLog& log) const {
  for (const CollectiveHeader& header : theirs) {
    const CollectiveHeader* const mine = log.find(header.sequence);
    if (mine && !matches(*mine, header)) {
      throw CollectiveError(mismatch_text(ranks_[rank_], *mine, ranks_[from], header));
    }
  }
}

namespace {

// all_gather and broadcast. Each chunk is sent once to each other host, where ranks share memory.
class CopyOperation final : public PiecedOperation {
 public:
  CopyOperation(MpiEndpoint& endpoint, CollectiveJob job);

 private:
  Chunk chunk(int64_t piece, int rank) const override;
  void fill(int64_t piece) override;
  void send(int64_t piece) override;
  bool settle(int64_t) override { return true; }
  bool collect(int64_t piece) override { return messages(piece).results.done(); }
  void drain(int64_t piece) override;
  bool drains() const override { return whole() != nullptr; }  // else this rank only serves
  // Data from other hosts must be received into memory that the neighbours share.
  bool can_be_direct() const override { return !across_hosts(); }

  void send_own(int64_t piece);
  const std::byte* own_input() const { return gathers() ? part() : whole(); }
  void drain_from(int64_t piece, int rank, const Chunk& chunk);
};

CopyOperation::CopyOperation(MpiEndpoint& endpoint, CollectiveJob job)
    : PiecedOperation(endpoint, std::move(job)) {
  if (gathers())
    set_pieces_of_parts();
  else
    set_pieces((whole_bytes() + endpoint.piece_bytes() - 1) / endpoint.piece_bytes());
}

PiecedOperation::Chunk CopyOperation::chunk(int64_t piece, int rank) const {
  if (gathers()) return chunk_of_part(piece, rank);
  const int64_t first = piece * endpoint().piece_bytes();
  const int64_t bytes = std::min(endpoint().piece_bytes(), whole_bytes() - first);
  return {first, rank == job().root ? bytes : 0, 0};
}

void CopyOperation::fill(int64_t piece) {
  const Chunk mine = chunk(piece, endpoint().layout().rank());
  if (mine.bytes == 0) return;
  std::byte* const to = scratch(endpoint().local(), piece) + mine.scratch;
  for (const CutRun& run : own_runs(endpoint().layout().rank(), mine.at, mine.bytes))
    std::memcpy(to + run.part, own_input() + run.whole, run.count);
}

void CopyOperation::send(int64_t piece) {
  if (!across_hosts()) return;
  send_own(piece);
  const HostLayout& layout = endpoint().layout();
  for (int owner = 0; owner < layout.size(); ++owner) {
    const Chunk theirs = chunk(piece, owner);
    const bool mine_to_take = layout.delegate(layout.host(), owner) == layout.rank();
    if (theirs.bytes == 0 || layout.is_local(owner) || !mine_to_take) continue;
    std::byte* const to = scratch(endpoint().local(), piece) + theirs.scratch;
    messages(piece).results.receive(endpoint().messages(), to, theirs.bytes, owner, tag(Leg::kResult, piece));
  }
}

void CopyOperation::send_own(int64_t piece) {
  const HostLayout& layout = endpoint().layout();
  const Chunk mine = chunk(piece, layout.rank());
  if (mine.bytes == 0) return;
  const std::byte* const from = scratch(endpoint().local(), piece) + mine.scratch;
  for (int host = 0; host < layout.hosts(); ++host) {
    if (host == layout.host()) continue;
    const int to = layout.delegate(host, layout.rank());
    messages(piece).sent.send(endpoint().messages(), from, mine.bytes, to, tag(Leg::kResult, piece));
  }
}

// This rank's own chunk may be in the whole already.
void CopyOperation::drain(int64_t piece) {
  const int self = endpoint().layout().rank();
  for (int rank = 0; rank < endpoint().layout().size(); ++rank) {
    const Chunk chunk = this->chunk(piece, rank);
    if (chunk.bytes == 0) continue;
    if (rank != self)
      drain_from(piece, rank, chunk);
    else if (!in_place())
      unpack(rank, chunk.at, chunk.bytes, own_input() + chunk.at);
  }
}

// Copies a rank's chunk from where it lies in the memory of this host.
void CopyOperation::drain_from(int64_t piece, int rank, const Chunk& chunk) {
  const HostLayout& layout = endpoint().layout();
  const int local = layout.local_of(layout.delegate(layout.host(), rank));
  if (!direct()) return unpack(rank, chunk.at, chunk.bytes, scratch(local, piece) + chunk.scratch);
  const std::byte* const from = neighbour_source(local);
  if (!slot(local).in_place) return unpack(rank, chunk.at, chunk.bytes, from + chunk.at);
  for (const CutRun& run : runs(rank, chunk.at, chunk.bytes))
    std::memcpy(whole() + run.whole, from + run.whole, run.count);
}

constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(10);
// Open MPI 5 kills the other ranks half a second after a rank's death; the error must be written before.
constexpr Nanoseconds kLostPeerAfter = std::chrono::milliseconds(100);

class MpiWork final : public Work {
 public:
  MpiWork(MpiGroup& group, std::shared_ptr<Operation> operation)
      : group_(group), operation_(std::move(operation)) {}

  bool done() override {
    if (!operation_->finished()) group_.progress();
    return operation_->finished();
  }
  const CollectiveHeader& header() const override { return operation_->header(); }
  bool finite() const override { return operation_->finite(); }

 private:
  MpiGroup& group_;
  std::shared_ptr<Operation> operation_;
};

}  // namespace

// A window whose offers and results travel as collectives of the group.
class MpiGroup::WindowAllocation final : public Allocation {
 public:
  WindowAllocation(MpiGroup& group, int64_t bytes)
      : group_(group),
        bytes_(bytes),
        label_("memory of " + std::to_string(bytes) + " bytes"),
        window_(std::make_shared<SharedWindow>(bytes)) {
    gather(&window_->offer(), sizeof(SharedWindow::Offer));
  }

  bool done() override {
    while (!is_done_ && work_->done()) mapped_ ? settle() : map();
    return is_done_;
  }
  const CollectiveHeader& header() const override { return work_->header(); }
  at::Tensor memory() const override {
    return at::from_blob(
        window_->own(), {bytes_}, [window = window_](void*) {}, at::TensorOptions().dtype(at::kByte));
  }

 private:
  void gather(const void* mine, int64_t bytes) {
    at::Tensor part = at::empty({bytes}, at::kByte);
    std::memcpy(part.mutable_data_ptr(), mine, static_cast<std::size_t>(bytes));
    gathered_ = at::empty({bytes * group_.size()}, at::kByte);
    work_ = group_.all_gather(std::move(part), gathered_, label_);
  }

  void map() {
    mapped_ = true;
    const auto* all = static_cast<const SharedWindow::Offer*>(gathered_.const_data_ptr());
    std::vector<SharedWindow::Offer> offers;
    for (const int neighbour : group_.layout_.neighbours()) offers.push_back(all[neighbour]);
    const int32_t failure = window_->map(offers, group_.endpoint_->local());
    gather(&failure, sizeof failure);
  }

  // From now on the neighbours have the window too, under the same number.
  void settle() {
    is_done_ = true;
    const auto* failures = static_cast<const int32_t*>(gathered_.const_data_ptr());
    window_->settle(*std::max_element(failures, failures + group_.size()));
    group_.endpoint_->add_window(window_);
  }

  MpiGroup& group_;
  int64_t bytes_;
  std::string label_;
  std::shared_ptr<SharedWindow> window_;
  at::Tensor gathered_;
  WorkPtr work_;
  bool mapped_ = false, is_done_ = false;
};

MpiGroup::MpiGroup(const MpiWorld& world, const Clock& clock, const std::vector<int>& ranks)
    : world_(world), clock_(clock), ranks_(ranks), layout_(HostLayout::of(world, ranks)) {}

MpiGroup::~MpiGroup() = default;

bool MpiGroup::ready() {
  if (endpoint_) return true;
  if (!meeting_) meeting_.emplace(world_, ranks_);
  if (!meeting_->done()) return false;
  meeting_.reset();
  endpoint_.emplace(world_, ranks_, layout_);
  if (layout_.hosts() > 1) exchange_.emplace(endpoint_->comm(), ranks_);
  return true;
}

AllocationPtr MpiGroup::allocate(int64_t bytes) { return std::make_unique<WindowAllocation>(*this, bytes); }

WorkPtr MpiGroup::all_reduce(at::Tensor inout, const std::string& label) {
  check_summable(inout);
  return post(CollectiveKind::kAllReduce, {.whole = inout}, label);
}

WorkPtr MpiGroup::reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_reduce_scatter(*this, input, out, *cut);
  return post(CollectiveKind::kReduceScatter, {.whole = input, .part = out, .cut = cut}, label);
}

WorkPtr MpiGroup::all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_all_gather(*this, input, out, *cut);
  return post(CollectiveKind::kAllGather, {.whole = out, .part = input, .cut = cut}, label);
}

WorkPtr MpiGroup::broadcast(at::Tensor inout, int root, const std::string& label) {
  check_flat(inout);
  TUTTI_ASSERT(root >= 0 && root < size(), "broadcast from a rank that is not in the group");
  return post(CollectiveKind::kBroadcast, {.whole = inout, .root = root}, label);
}

WorkPtr MpiGroup::barrier(const std::string& label) { return post(CollectiveKind::kBarrier, {}, label); }

WorkPtr MpiGroup::post(CollectiveKind kind, CollectiveJob job, const std::string& label) {
  TUTTI_ASSERT(endpoint_, label + " before the ranks of the group have met");
  job.header = log_.next(kind, job, label);
  const auto operation = make_operation(std::move(job));
  active_.push_back({operation, clock_.now()});
  progress();
  return std::make_unique<MpiWork>(*this, operation);
}

std::shared_ptr<Operation> MpiGroup::make_operation(CollectiveJob job) {
  const CollectiveKind kind = job.header.kind;
  const bool is_small = job.header.bytes <= static_cast<uint64_t>(ControlSlot::kInlineBytes);
  if (is_small && layout_.hosts() == 1) return std::make_shared<InlineOperation>(*endpoint_, std::move(job));
  if (kind == CollectiveKind::kBarrier) job.whole = at::zeros({1}, at::kInt);
  if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kBroadcast) {
    return std::make_shared<CopyOperation>(*endpoint_, std::move(job));
  }
  return std::make_shared<ReduceOperation>(*endpoint_, std::move(job));
}

void MpiGroup::progress() {
  if (!failure_.empty()) throw CollectiveError(failure_);
  try {
    advance_operations();
    watch();
  } catch (const CollectiveError& error) {
    failure_ = error.what();
    if (exchange_) exchange_->send_alarm(failure_);
    throw;
  }
}

// Advances a few operations per call, the oldest first on every rank.
void MpiGroup::advance_operations() {
  constexpr int kMostAtOnce = 2;
  int moved = 0;
  for (auto item = active_.begin(); item != active_.end() && moved < kMostAtOnce;) {
    moved += item->operation->advance();
    item = item->operation->finished() ? active_.erase(item) : std::next(item);
  }
  moves_ += moved;
}

void MpiGroup::watch() {
  const TimePoint now = clock_.now();
  if (now < next_check_) return;
  next_check_ = now + kPollInterval;
  if (exchange_) exchange_->check_received(log_);
  if (active_.empty()) return;
  const Nanoseconds waited = now - active_.front().since;
  if (waited >= kLostPeerAfter) check_for_lost_peer();
  if (waited < kTimeout || !exchange_ || active_.front().reported) return;
  active_.front().reported = true;
  exchange_->send_headers(log_);
}

std::vector<int> MpiGroup::late() const {
  if (meeting_) return meeting_->late();
  return active_.empty() ? std::vector<int>() : active_.front().operation->late();
}

// Ranks that wait for a dead process end too. So a member of this group may wait, or end, because of a rank
// outside the group.
void MpiGroup::check_for_lost_peer() const {
  if (const auto lost = world_.lost_peer()) throw LostRankError(*lost, active_.front().operation->header());
}

std::unique_ptr<Group> MpiGroupFactory::make(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return LocalFabric::make(ranks)->group(0);
  return std::make_unique<MpiGroup>(world_, clock_, ranks);
}

}  // namespace tutti
