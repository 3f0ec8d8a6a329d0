#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <new>
#include <stdexcept>

#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "training/trainee.h"

namespace tutti {
namespace {

using testing::HasSubstr;

EndKind end_of_building(const std::exception_ptr& why) {
  try {
    build_model(
        section_with({{"kind", std::string("mlp")}}), {},
        [&](const Setting&, const SampleSpec&) -> std::shared_ptr<Model> { std::rethrow_exception(why); }, 1);
  } catch (const RunError& error) {
    EXPECT_THAT(error.message(), HasSubstr("it cannot be built: "));
    return error.kind();
  }
  return EndKind::kDone;
}

TEST(BuildModel, LackOfMemoryIsNoMistakeOfTheUser) {
  const auto torchs = [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "no room"); };
  EXPECT_EQ(end_of_building(std::make_exception_ptr(std::bad_alloc())), EndKind::kOutOfMemoryElsewhere);
  EXPECT_EQ(end_of_building(std::make_exception_ptr(std::runtime_error("mmap: Cannot allocate memory"))),
            EndKind::kOutOfMemoryElsewhere);
  EXPECT_EQ(end_of_building(std::make_exception_ptr(std::runtime_error("sizes"))), EndKind::kUserError);
  try {
    torchs();
  } catch (...) {
    EXPECT_EQ(end_of_building(std::current_exception()), EndKind::kOutOfMemoryElsewhere);
  }
}

}  // namespace
}  // namespace tutti
