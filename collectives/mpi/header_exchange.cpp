#include "collectives/mpi/header_exchange.h"

#include <cstring>
#include <set>
#include <utility>

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
  std::set<int> found;
  for (int distance = 1; distance < size; distance *= 2) {
    found.insert((rank_ + distance) % size);
    found.insert((rank_ + size - distance) % size);
  }
  found.erase(rank_);
  return {found.begin(), found.end()};
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

}  // namespace tutti
