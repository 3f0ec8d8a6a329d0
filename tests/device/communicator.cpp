#include "tests/device/communicator.h"

#include <ATen/ops/add.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "tests/device/aliases.h"
#include "tests/device/launch_order.h"
#include "tests/device/service.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

// What ranks have sent for a call, as CPU tensors.
class Sent {
 public:
  Sent(const Rendezvous& meeting, uint64_t number, const at::Tensor& like, int64_t count)
      : meeting_(meeting), number_(number), options_(like.options()), count_(count) {}

  at::Tensor of(int rank) const {
    const std::size_t bytes = static_cast<std::size_t>(count_) * options_.dtype().itemsize();
    return at::from_blob(meeting_.outbox(rank, number_, bytes), {count_}, options_);
  }
  // Of elements [first, first + count).
  at::Tensor sum(int64_t first, int64_t count) const { return sum(0, meeting_.size(), first, count); }

 private:
  // As collectives/group.h says.
  at::Tensor sum(int begin, int end, int64_t first, int64_t count) const {
    const auto ranks = static_cast<unsigned>(end - begin);
    if (ranks == 1) return of(begin).narrow(0, first, count);
    const int middle = begin + static_cast<int>(std::bit_floor(ranks - 1));
    return at::add(sum(begin, middle, first, count), sum(middle, end, first, count));
  }

  const Rendezvous& meeting_;
  uint64_t number_;
  at::TensorOptions options_;
  int64_t count_;
};

class SharedCommunicator final : public Communicator {
 public:
  SharedCommunicator(const CommunicatorId& id, int rank, const std::vector<int>& ranks)
      : link_(std::make_shared<Link>(id, rank, ranks)),
        name_("communicator " +
              std::to_string(launch_order().add_communicator(ranks.at(static_cast<std::size_t>(rank))))),
        compared_(ranks.size()) {
    service().add(link_);
  }
  // Waits for what is in progress, as ncclCommDestroy.
  ~SharedCommunicator() override {
    {
      Lock lock(state().mutex);
      if (!link_->pending.empty()) {
        const Kernel last = link_->pending.back().receive;
        state().order.complete(lock, last.stream, last.number);
      }
    }
    service().remove(link_);
  }

  bool ready() override { return link_->meeting.all_joined(); }

  void all_reduce(const at::Tensor& inout) override {
    launch(Call::kAllReduce, 0, inout.numel(), inout, inout,
           [](const Sent& sent, at::Tensor out) { out.copy_(sent.sum(0, out.numel())); });
  }
  void reduce_scatter(const at::Tensor& whole, const at::Tensor& part) override {
    launch(Call::kReduceScatter, 0, part.numel(), whole, part,
           [rank = rank()](const Sent& sent, at::Tensor out) {
             out.copy_(sent.sum(rank * out.numel(), out.numel()));
           });
  }
  void all_gather(const at::Tensor& part, const at::Tensor& whole) override {
    launch(Call::kAllGather, 0, part.numel(), part, whole,
           [ranks = size(), count = part.numel()](const Sent& sent, const at::Tensor& out) {
             for (int one = 0; one < ranks; ++one) out.narrow(0, one * count, count).copy_(sent.of(one));
           });
  }
  void broadcast(const at::Tensor& inout, int root) override {
    const bool is_root = root == rank();
    launch(Call::kBroadcast, root, inout.numel(), is_root ? inout : inout.narrow(0, 0, 0), inout,
           [root](const Sent& sent, at::Tensor out) { out.copy_(sent.of(root)); });
  }

  std::string failure() override {
    const Rendezvous::Rank& own = link_->meeting.own();
    for (int one = 0; one < size(); ++one) {
      const Rendezvous::Rank& other = link_->meeting.of(one);
      uint64_t& number = compared_[static_cast<std::size_t>(one)];
      for (; one != rank() && number < std::min<uint64_t>(own.launched, other.launched); ++number) {
        const std::string wrong = launch_order().compare(own, own.call(number), other, other.call(number));
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

  void abort() noexcept override {
    const Lock lock(state().mutex);
    link_->aborted = true;
    service().wake();
  }

 private:
  using Receive = std::function<void(const Sent& sent, const at::Tensor& out)>;

  int rank() const { return link_->meeting.rank(); }
  int size() const { return link_->meeting.size(); }

  // `count`: of the call.
  void launch(Call::Kind kind, int root, int64_t count, const at::Tensor& input, const at::Tensor& output,
              Receive receive) {
    const uint64_t number = publish({kind, static_cast<int8_t>(output.scalar_type()), root, count});
    Aliases aliases;
    const at::Tensor in = aliases.of(input), out = aliases.of(output);
    const std::string name = "collective " + link_->meeting.own().call(number).text();
    State& s = state();
    Lock lock(s.mutex);
    const int stream = current_stream(output.device().index());
    TORCH_CHECK(stream_ < 0 || stream_ == stream, "a communicator of the test device has one stream");
    stream_ = stream;
    const Kernel send = note(s, name + ", sending", stream, input, false);
    s.order.submit(lock, send, [link = link_, in, number] { send_input(*link, in, number); });
    const Kernel arrival = note(s, name, stream, output, true);
    link_->pending.push_back({number, send, arrival});
    const int64_t sent = kind == Call::kBroadcast ? count : in.numel();
    s.order.submit(
        lock, arrival,
        [link = link_, out, number, sent, receive = std::move(receive)] {
          if (!link->aborted) receive(Sent(link->meeting, number, out, sent), out);
        },
        [link = link_, number](bool wanted) { return may_receive(*link, number, wanted); });
    service().wake();
  }

  uint64_t publish(Call call) {
    Rendezvous::Rank& own = link_->meeting.own();
    const uint64_t number = own.launched;
    call.place = launch_order().add(own.world_rank, name_ + ": " + call.text());
    own.calls[number % Rendezvous::kKeptCalls] = call;
    own.launched = number + 1;
    return number;
  }

  static Kernel note(State& s, const std::string& name, int stream, const at::Tensor& tensor, bool write) {
    const Kernel kernel = s.order.launch(name, stream);
    const Extent bytes = extent(tensor);
    s.memory.note(kernel, bytes.begin, bytes.end, write);
    return kernel;
  }

  // The outbox is free: all have sent the call before, and so received the one before that.
  static void send_input(Link& link, const at::Tensor& in, uint64_t number) {
    const int rank = link.meeting.rank();
    Sent(link.meeting, number, in, in.numel()).of(rank).copy_(in);
    link.meeting.own().sent = number + 1;
  }

  static bool may_receive(Link& link, uint64_t number, bool wanted) {
    if (link.aborted || link.meeting.all_sent(number)) return true;
    if (wanted && link.meeting.own().wanted <= number) {
      link.meeting.own().wanted = number + 1;
      service().wake();
    }
    return false;
  }

  std::shared_ptr<Link> link_;
  std::string name_;
  std::vector<uint64_t> compared_;  // by rank: calls that were compared with its
  int stream_ = -1;
};

}  // namespace

std::unique_ptr<Communicator> connect(const CommunicatorId& id, int rank, const std::vector<int>& ranks) {
  return std::make_unique<SharedCommunicator>(id, rank, ranks);
}

}  // namespace tutti::test_device
