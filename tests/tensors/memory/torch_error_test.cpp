#include "tensors/memory/torch_error.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace tutti {
namespace {

TEST(TorchError, IsOneLineWithoutItsStackTrace) {
  try {
    at::ones({2, 3}).view({4, 2});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_EQ(one_line(error), "shape '[4, 2]' is invalid for input of size 6");
    EXPECT_NE(std::string(error.what()).find('\n'), std::string::npos) << "there was nothing to leave out";
  }
}

TEST(TorchError, OtherErrorsKeepTheirWords) {
  EXPECT_EQ(one_line(std::runtime_error("one\ntwo\n")), "one two");
  EXPECT_EQ(one_line(std::bad_alloc()), "out of memory");
  EXPECT_EQ(one_line(std::runtime_error("could not create a primitive")),
            "out of memory (could not create a primitive)");
  EXPECT_EQ(one_line(std::runtime_error("[enforce fail at inline.cc:180] . it is torn")), "it is torn");
}

}  // namespace
}  // namespace tutti
