#include "collectives/cuda_library.h"

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
    CudaLibrary library(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CudaLibrary, AMissingLibraryIsNamed) {
  EXPECT_THAT(refusal("/nowhere/libtutti_cuda.so"), HasSubstr("/nowhere/libtutti_cuda.so"));
  EXPECT_THAT(refusal("/nowhere/libtutti_cuda.so"), HasSubstr("TUTTI_CUDA=OFF"));
}

TEST(CudaLibrary, AForeignLibraryIsRefused) {
  EXPECT_THAT(refusal("libm.so.6"), HasSubstr("of another build"));
}

TEST(CudaLibrary, LiesBesideLibtutti) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  EXPECT_EQ(refusal(""), "");
}

TEST(CudaLibrary, SeesAsManyDevicesAsTheDriverShows) {
  if (!kBuilt) GTEST_SKIP() << "built without CUDA";
  const int count = CudaLibrary().device_count();
  EXPECT_EQ(count > 0, CudaLibrary::has_driver());
}

}  // namespace
}  // namespace tutti
