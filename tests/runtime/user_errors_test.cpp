#include "runtime/user_errors.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

Position at(int line) { return {"r.toml", line}; }

TEST(MistakeCollector, ThrowsTheOnlyMistakeAsItIs) {
  MistakeCollector mistakes;
  EXPECT_NO_THROW(mistakes.throw_all());
  EXPECT_TRUE(mistakes.collect([] {}));
  EXPECT_FALSE(mistakes.collect([] { throw UserError(at(3), "three"); }));
  try {
    mistakes.throw_all();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "r.toml:3: three");
  }
}

TEST(MistakeCollector, MistakesAreCountedAndInTheOrderOfLines) {
  MistakeCollector inner, outer;
  inner.collect([] { throw UserError(at(7), "seven"); });
  inner.collect([] { throw UserError({"--set", 0}, "option"); });
  outer.collect([&] { inner.throw_all(); });
  outer.collect([] { throw UserError(at(3), "three"); });
  outer.collect([] { throw UserError(at(3), "three"); });
  try {
    outer.throw_all();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserErrors& errors) {
    EXPECT_EQ(errors.each().size(), 3u);
    EXPECT_STREQ(errors.what(),
                 "r.toml:3: three\n\nerror: r.toml:7: seven\n\nerror: --set: option\n\n3 errors in r.toml");
  }
}

TEST(MistakeCollector, OfVeryManyTheFirstAreShown) {
  MistakeCollector mistakes;
  for (int line = 1; line <= 50; ++line) mistakes.add(UserError(at(line), "wrong"));
  try {
    mistakes.throw_all();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("r.toml:20: "), std::string::npos);
    EXPECT_EQ(what.find("r.toml:21: "), std::string::npos);
    EXPECT_TRUE(what.ends_with("\n...\n50 errors in r.toml")) << what;
  }
}

TEST(MistakeCollector, ErrorsAgreedOnByAllRanksAreNotCollected) {
  MistakeCollector mistakes;
  EXPECT_THROW(mistakes.collect([] { throw UserError("refused", EndKind::kRefused); }), UserError);
  EXPECT_THROW(mistakes.collect([] { throw OperatingError("the disk is full"); }), OperatingError);
  EXPECT_TRUE(mistakes.empty());
}

}  // namespace
}  // namespace tutti
