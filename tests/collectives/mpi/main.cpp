#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "collectives/mpi/world.h"
#include "tests/collectives/mpi/fixture.h"

namespace {

// Rank 0 reports as usual, the others only what failed.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const char* const file = result.file_name() ? result.file_name() : "";
    std::cerr << "rank " << rank_ << ": " << file << ":" << result.line_number() << ": " << result.message()
              << "\n";
  }

 private:
  int rank_;
};

// TUTTI_TEST_HOSTS=aabb pretends that ranks 0 and 1 are on one host, 2 and 3 on another.
std::string pretended_host() {
  const char* const hosts = std::getenv("TUTTI_TEST_HOSTS");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return hosts && rank ? std::string(1, hosts[std::atoi(rank)]) : "";
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tutti::MpiWorld world(&argc, &argv, pretended_host());
  tutti::MpiTest::world = &world;
  if (world.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(world.rank()));
  }
  const int code = RUN_ALL_TESTS();
  if (code != 0) world.abort(code);
  return code;
}
