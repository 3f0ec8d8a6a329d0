#include "data/tables/class_guess.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tutti {
namespace {

ClassGuess guess_of(const std::vector<double>& numbers) {
  ClassGuess guess;
  for (const double number : numbers) guess.add(number);
  return guess;
}

TEST(ClassGuess, WholeNumbersFrom0WithoutAGapAreClasses) {
  EXPECT_EQ(guess_of({2, 0, 1, 1}).classes(), 3);
  EXPECT_EQ(guess_of({0, 2}).classes(), 0);
  EXPECT_EQ(guess_of({1, 2}).classes(), 0);
}

TEST(ClassGuess, OtherNumbersAreValues) {
  for (const double value : {0.5, -1.0, 1000.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(guess_of({0, 1, value}).classes(), 0) << value;
    EXPECT_EQ(guess_of({value, 0, 1}).classes(), 0) << value;
    EXPECT_EQ(guess_of({1, 2, value}).classes_from_1(), 0) << value;
  }
  EXPECT_EQ(guess_of({0, 0}).classes(), 0) << "a single class";
  EXPECT_EQ(guess_of({}).classes(), 0);
}

TEST(ClassGuess, NumbersFrom1OnAreCounted) {
  EXPECT_EQ(guess_of({3, 1, 2}).classes_from_1(), 3);
  EXPECT_EQ(guess_of({0, 1, 2}).classes_from_1(), 0);
  EXPECT_EQ(guess_of({1, 3}).classes_from_1(), 0);
  EXPECT_EQ(guess_of({1, 1}).classes_from_1(), 0) << "a single class";
}

}  // namespace
}  // namespace tutti
