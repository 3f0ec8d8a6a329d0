#include "collectives/device_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "collectives/device/groups.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr bool kBuilt = TUTTI_CUDA_BUILT;

std::string refusal(const std::string& path) {
  try {
    DeviceLibrary library(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceLibrary, AMissingLibraryIsNamed) {
  EXPECT_THAT(refusal("/nowhere/libtutti_cuda.so"), HasSubstr("/nowhere/libtutti_cuda.so"));
  EXPECT_THAT(refusal("/nowhere/libtutti_cuda.so"), HasSubstr("TUTTI_CUDA=OFF"));
}

TEST(DeviceLibrary, AForeignLibraryIsRefused) {
  EXPECT_THAT(refusal("libm.so.6"), HasSubstr("of another build"));
}

TEST(DeviceLibrary, LiesBesideLibtutti) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  EXPECT_NO_THROW(DeviceLibrary::load("cuda"));
}

TEST(DeviceLibrary, HasItsAllocatorsDefaultsUnlessTheEnvironmentHasOthers) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  unsetenv("PYTORCH_ALLOC_CONF");
  DeviceLibrary::load("cuda");
  EXPECT_STREQ(std::getenv("PYTORCH_ALLOC_CONF"), "expandable_segments:True");
  setenv("PYTORCH_ALLOC_CONF", "expandable_segments:False", 1);
  DeviceLibrary::load("cuda");
  EXPECT_STREQ(std::getenv("PYTORCH_ALLOC_CONF"), "expandable_segments:False");
}

TEST(DeviceLibrary, SeesAsManyDevicesAsTheDriverShows) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  const int count = DeviceLibrary::load("cuda")->device_count();
  EXPECT_EQ(count > 0, DeviceLibrary::has_gpu_driver());
}

TEST(DeviceLibrary, OfTestsHasDevicesThatRanksShare) {
  const auto library = DeviceLibrary::load("test");
  const int count = library->device_count();
  ASSERT_GT(count, 0);
  const Device first = library->device(0, 0), next = library->device(count + 1, 3);
  EXPECT_FALSE(first.is_cpu());
  EXPECT_EQ(first.where.index(), 0);
  EXPECT_EQ(next.where.index(), 1 % count);
  EXPECT_EQ(next.memory_slot, 3);
  EXPECT_EQ(next.name, "test device");
}

TEST(CommunicatorsOf, TheTestsDeviceAreChosenByNameAlone) {
  const auto devices = std::shared_ptr<const DeviceLibrary>(DeviceLibrary::load("test"));
  EXPECT_EQ(communicators_of(devices, Backend::kNccl, 8), devices);
  for (const Backend other : {Backend::kAuto, Backend::kMpi, Backend::kLocal})
    EXPECT_EQ(communicators_of(devices, other, 1), nullptr);
  EXPECT_EQ(communicators_of(nullptr, Backend::kAuto, 1), nullptr);
}

TEST(CommunicatorsOf, GpusAreChosenWhereEachRankHasOne) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  const auto devices = std::shared_ptr<const DeviceLibrary>(DeviceLibrary::load("cuda"));
  const int count = devices->device_count();
  EXPECT_EQ(communicators_of(devices, Backend::kAuto, count), devices);
  EXPECT_EQ(communicators_of(devices, Backend::kAuto, count + 1), nullptr);
  EXPECT_EQ(communicators_of(devices, Backend::kMpi, count), nullptr);
}

}  // namespace
}  // namespace tutti
