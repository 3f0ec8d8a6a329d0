#include "tensors/memory/out_of_memory.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <oneapi/dnnl/dnnl_common.hpp>
#include <stdexcept>
#include <system_error>

#include "tensors/memory/memory_attempt.h"

namespace tutti {
namespace {

constexpr OutOfMemoryReport kShortage{1, 3.2e6, 14.9e6, 16e6, {{1e6, 0, 1e6, 2e6, 5e5, 3e6}}};

std::vector<OutOfMemoryReport> after_the_sum(const std::vector<OutOfMemoryReport>& each) {
  const int world = static_cast<int>(each.size());
  at::Tensor sum = report_row(each[0], 0, world);
  for (int rank = 1; rank < world; ++rank) sum += report_row(each[rank], rank, world);
  return reports_of(sum);
}

TEST(OutOfMemoryReportTest, EveryRankReadsWhoItWas) {
  EXPECT_EQ(out_of_memory_text(after_the_sum({{}, kShortage, {}})),
            "rank 1 ran out of memory (asked 3.2 MB, 14.9 of 16.0 MB in use)");
  EXPECT_EQ(out_of_memory_text(after_the_sum({{}, kShortage, kShortage})),
            "rank 1 and 1 other ran out of memory (asked 3.2 MB, 14.9 of 16.0 MB in use)");
}

TEST(OutOfMemoryReportTest, UnknownFiguresAreLeftOut) {
  EXPECT_EQ(out_of_memory_text({{1}}), "rank 0 ran out of memory");
  EXPECT_EQ(out_of_memory_text({{1, 5e3, 1e9}}),
            "rank 0 ran out of memory (asked 0.0050 MB, 1000.0 MB in use)");
}

TEST(OutOfMemoryReportTest, UnaccountedMemoryIsActivations) {
  EXPECT_EQ(what_held_memory({{}, kShortage}),
            "parameters 1.0 MB, gradients 1.0 MB, optimizer state 2.0 MB, the batch 0.5 MB, checkpoint copy "
            "3.0 MB, the rest (activations, batches read ahead) 7.4 MB");
}

TEST(OutOfMemoryReportTest, WordsOfALibraryReachEveryRank) {
  OutOfMemoryReport mine;
  mine.ranks = 1;
  mine.words = "could not create a primitive";
  EXPECT_EQ(out_of_memory_text(after_the_sum({{}, mine, kShortage})),
            "rank 1 and 1 other ran out of memory (could not create a primitive)");
  mine.asked = 3.2e6;
  mine.used = 14.9e6;
  mine.words = "`ulimit -v` of 800.0 MB, of which 64.0 MB are left";
  EXPECT_EQ(
      out_of_memory_text(after_the_sum({mine})),
      "rank 0 ran out of memory (asked 3.2 MB, 14.9 MB in use; `ulimit -v` of 800.0 MB, of which 64.0 MB "
      "are left)");
  mine.words = std::string(95, 'x') + "yz";
  EXPECT_EQ(after_the_sum({{}, mine})[1].words, std::string(95, 'x') + "y");
  EXPECT_EQ(after_the_sum({{}, mine})[0].words, "");
}

// As they are thrown where memory is short: seen under `ulimit -v`, or in the strings of libtorch and its
// MKL.
TEST(LackOfMemory, IsRecognizedByTheTextOfAnError) {
  for (const char* words :
       {"could not create a primitive", "could not create a memory object", "could not execute a primitive",
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
        "to "
        "allocate 4000000 bytes. Error code 12 (Cannot allocate memory)",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 4000000 bytes.",
        "C10 Out of Memory. Trying to allocate 12", "Could not allocate memory for Tensor SizesAndStrides!",
        "MKL FFT error: Intel oneMKL DFTI ERROR: Not enough memory to allocate",
        "Intel oneMKL FATAL ERROR: memory allocation error.",
        "unable to mmap 4096 bytes from file <x>: Cannot allocate memory (12)", "std::bad_alloc"}) {
    EXPECT_TRUE(is_lack_of_memory(std::runtime_error(words))) << words;
  }
  for (const char* words : {"could not create a primitive descriptor for a pooling", "could not open a file",
                            "mat1 and mat2 shapes cannot be multiplied", "memory format"}) {
    EXPECT_FALSE(is_lack_of_memory(std::runtime_error(words))) << words;
  }
}

TEST(LackOfMemory, IsRecognizedByTypes) {
  EXPECT_TRUE(is_lack_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_lack_of_memory(c10::OutOfMemoryError({}, "any")));
  const auto system = [](std::errc code) { return std::system_error(std::make_error_code(code), "thread"); };
  EXPECT_TRUE(is_lack_of_memory(system(std::errc::not_enough_memory)));
  EXPECT_TRUE(is_lack_of_memory(system(std::errc::resource_unavailable_try_again)));
  EXPECT_FALSE(is_lack_of_memory(system(std::errc::permission_denied)));
  EXPECT_TRUE(is_lack_of_memory(dnnl::error(dnnl_out_of_memory, "could not reshape")));
  EXPECT_TRUE(is_lack_of_memory(dnnl::error(dnnl_runtime_error, "could not create a primitive")));
  EXPECT_FALSE(is_lack_of_memory(dnnl::error(dnnl_invalid_arguments, "could not create a primitive")));
}

// They say already what they are, or are of another rank.
TEST(LackOfMemory, IsNotAnErrorOfTutti) {
  EXPECT_FALSE(is_lack_of_memory(OperatingError("rank 1: out of memory")));
  EXPECT_FALSE(is_lack_of_memory(AgreedOutOfMemory(EndKind::kOutOfMemoryInStep, "out of memory")));
}

// The meter, operator new, threads, and a library that does not say so.
TEST(OutOfMemoryTest, TheMessageSaysOutOfMemoryOnce) {
  const std::string end =
      "step 1: out of memory, and it cannot be done in smaller parts; --resume auto continues from the last "
      "checkpoint, if there is one";
  const auto told = [](const std::exception& error) {
    return std::string(OutOfMemory("step 1", error).what());
  };
  EXPECT_EQ(told(c10::OutOfMemoryError({}, "out of memory: 8 bytes could not be allocated")),
            end + ": 8 bytes could not be allocated");
  EXPECT_EQ(told(std::bad_alloc()), end);
  EXPECT_EQ(told(std::runtime_error("could not create a primitive")),
            end + ": out of memory (could not create a primitive)");
  const MemoryScope scope(0);
  EXPECT_EQ(failure_of(std::bad_alloc(), scope).words, "");
}

}  // namespace
}  // namespace tutti
