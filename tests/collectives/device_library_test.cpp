#include "collectives/device_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(DeviceLibrary, SeesAsManyDevicesAsTheDriverShows) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  const int count = DeviceLibrary::load("cuda")->device_count();
  EXPECT_EQ(count > 0, DeviceLibrary::has_gpu_driver());
}

}  // namespace
}  // namespace tutti
