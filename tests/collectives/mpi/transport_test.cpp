#include "collectives/mpi/transport.h"

#include <sched.h>

#include "tests/collectives/mpi/fixture.h"

namespace {
int looks = 0;  // at requests
}

extern "C" int MPI_Testall(int count, MPI_Request requests[], int* done, MPI_Status statuses[]) {
  ++looks;
  return PMPI_Testall(count, requests, done, statuses);
}

namespace tutti {
namespace {

class MpiTransportTest : public MpiTest {
 protected:
  static Transport::Packet receive(MpiTransport& transport) {
    while (true) {
      if (auto packet = transport.poll()) return *packet;
      sched_yield();
    }
  }
};

TEST_F(MpiTransportTest, PacketsBetweenTwoRanksKeepTheirOrder) {
  constexpr int kPackets = 200;
  MpiTransport transport(*world);
  for (int i = 0; i < kPackets; ++i) {
    for (int to = 0; to < size(); ++to) transport.send(to, std::string(i * 50, 'x') + std::to_string(i));
  }
  std::vector<int> seen(size(), 0);
  for (int i = 0; i < kPackets * size(); ++i) {
    const Transport::Packet packet = receive(transport);
    const int number = seen[packet.from]++;
    EXPECT_EQ(packet.bytes, std::string(number * 50, 'x') + std::to_string(number));
  }
  EXPECT_FALSE(transport.poll());
  wait(make_group()->barrier("all have heard"));
}

// A look that finds nothing may cost a turn of a busy processor.
TEST_F(MpiTransportTest, APollLooksAtFewOfManyPacketsUnderWay) {
  if (size() == 1) GTEST_SKIP() << "takes two ranks";
  constexpr int kPackets = 100;
  MpiTransport transport(*world);
  const std::string large(100000, 'x');  // is sent when it is received
  for (int i = 0; i < kPackets; ++i) transport.send((rank() + 1) % size(), large);
  looks = 0;
  int received = transport.poll() ? 1 : 0;
  EXPECT_LT(looks, kPackets / 2);
  wait(make_group()->barrier("all have looked"));
  for (; received < kPackets; ++received) EXPECT_EQ(receive(transport).bytes, large);
  wait(make_group()->barrier("all have heard"));
}

TEST_F(MpiTransportTest, APacketMayBeEmpty) {
  MpiTransport transport(*world);
  transport.send((rank() + 1) % size(), "");
  const Transport::Packet packet = receive(transport);
  EXPECT_EQ(packet.from, (rank() + size() - 1) % size());
  EXPECT_EQ(packet.bytes, "");
}

}  // namespace
}  // namespace tutti
