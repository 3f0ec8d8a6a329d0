#include "io/weights/torch_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/weights/weights.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/counting_disk.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/io/weights/torch_archive.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Key;
using testing::StartsWith;
using testing::UnorderedElementsAre;

std::string floats(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

class TorchFileTest : public testing::Test {
 protected:
  // Opens a file with one storage, "0", of the numbers 0 to 11.
  std::unique_ptr<TensorSource> open(const std::string& value) {
    write_torch_archive(path_, Pickled::whole(value), {{"0", floats(12)}});
    return open_torch_file(disk_, path_);
  }
  std::string refused(const std::string& value) {
    return message_of<UserError>([&] { open(value); });
  }
  static std::string dict_with(const std::string& tensor) {
    return Pickled::dict(Pickled::text("w") + tensor);
  }

  static std::string twelve() { return Pickled::storage("FloatStorage", "0", 12); }
  static std::string matrix() {
    return Pickled::tensor(twelve(), 0, Pickled::number(3) + Pickled::number(4),
                           Pickled::number(4) + Pickled::number(1));
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.pt");
  CountingDisk disk_;
  const at::Tensor numbers_ = at::arange(12, at::kFloat).reshape({3, 4});
};

TEST_F(TorchFileTest, RowsAreReadAlone) {
  const auto weights = open(dict_with(matrix()));
  const at::Tensor rows = at::empty({2, 4});
  disk_.reads.clear();
  weights->read("w", {{1, 0}, {2, 4}}, rows);
  EXPECT_TRUE(rows.equal(numbers_.narrow(0, 1, 2)));
  EXPECT_EQ(disk_.bytes_of(""), 2 * 4 * sizeof(float));
}

TEST_F(TorchFileTest, TensorsMayHaveAnyStridesAndShareAStorage) {
  const auto number = Pickled::number;
  const auto weights = open(Pickled::dict(
      Pickled::text("turned") + Pickled::tensor(twelve(), 0, number(4) + number(3), number(1) + number(4)) +
      Pickled::text("part") + Pickled::tensor(twelve(), 5, number(2) + number(2), number(4) + number(2)) +
      Pickled::text("one") + Pickled::tensor(twelve(), 7, "", "")));
  EXPECT_TRUE(read_all(*weights, "turned").equal(numbers_.t()));
  EXPECT_TRUE(read_all(*weights, "part").equal(at::tensor({5.0F, 7.0F, 9.0F, 11.0F}).reshape({2, 2})));
  EXPECT_EQ(read_all(*weights, "one").item<float>(), 7);
  const at::Tensor rows = at::empty({2, 3});
  weights->read("turned", {{1, 0}, {2, 3}}, rows);
  EXPECT_TRUE(rows.equal(numbers_.t().narrow(0, 1, 2)));
  std::array<float, 4> some = {};
  weights->read_numbers("turned", 2, std::as_writable_bytes(std::span(some)));
  EXPECT_THAT(some, testing::ElementsAre(8, 1, 5, 9));
}

TEST_F(TorchFileTest, StateDictsMayBeWrappedAndHoldMoreThanTensors) {
  const std::string state = Pickled::ordered_dict() + "(" + Pickled::text("w") + matrix() +
                            Pickled::text("v") + Pickled::number(5) + "u}b";
  for (const char* name : {"state_dict", "model", "model_state_dict", "module"})
    EXPECT_THAT(open(Pickled::dict(Pickled::text("epoch") + Pickled::number(3) + Pickled::text(name) + state))
                    ->entries(),
                UnorderedElementsAre(Key("w")))
        << name;
  const std::string beside = Pickled::dict(Pickled::text("loss") + matrix() + Pickled::text("model") + state);
  EXPECT_THAT(open(beside)->entries(), UnorderedElementsAre(Key("w")));
  const std::string composers =
      Pickled::dict(Pickled::text("state") + Pickled::dict(Pickled::text("model") + state));
  EXPECT_THAT(open(composers)->entries(), UnorderedElementsAre(Key("w")));
}

TEST_F(TorchFileTest, WithoutAStateDictNamesItsKeys) {
  EXPECT_EQ(refused(Pickled::dict(Pickled::text("epoch") + Pickled::number(3))),
            path_ + ": it holds no state dict; its keys are 'epoch'");
  EXPECT_EQ(refused(Pickled::number(3)), path_ + ": it holds no state dict; it is no dict");
}

TEST_F(TorchFileTest, PythonCodeIsRefusedByName) {
  const std::string code = Pickled::call(Pickled::global("os", "system"), Pickled::text("touch gone"));
  EXPECT_THAT(refused(dict_with(code)),
              AllOf(StartsWith(path_), HasSubstr("it wants to run 'os.system' of Python")));
  EXPECT_THAT(refused(code), HasSubstr("'os.system'"));
  const std::string by_stack = Pickled::text("builtins") + Pickled::text("eval") + "\x93";
  EXPECT_THAT(refused(by_stack + Pickled::tuple(Pickled::text("1")) + "R"), HasSubstr("'builtins.eval'"));
}

TEST_F(TorchFileTest, TensorsOutsideTheirStorageAreRefused) {
  const auto number = Pickled::number;
  const auto of = [&](int offset, const std::string& sizes, const std::string& strides) {
    return refused(dict_with(Pickled::tensor(twelve(), offset, sizes, strides)));
  };
  EXPECT_THAT(of(1, number(12), number(1)), HasSubstr("lies outside its storage '0' of 12 numbers"));
  EXPECT_THAT(of(0, number(3), number(6)), HasSubstr("lies outside its storage '0' of 12 numbers"));
  EXPECT_THAT(of(0, number(3), number(1) + number(1)), HasSubstr("strides of another rank"));
  const std::string huge = "\x8a\x08" + std::string(7, '\xff') + "\x7f";
  EXPECT_THAT(of(0, huge + huge, number(0) + number(0)), HasSubstr("is too large"));
  EXPECT_THAT(of(0, huge, huge), HasSubstr("is too large"));
  EXPECT_THAT(
      refused(dict_with(Pickled::tensor(Pickled::storage("FloatStorage", "0", 13), 0, number(2), number(1)))),
      HasSubstr("its record 'data/0' has 48 bytes, its pickle expects 52"));
  EXPECT_THAT(
      refused(dict_with(Pickled::tensor(Pickled::storage("FloatStorage", "1", 2), 0, number(2), number(1)))),
      HasSubstr("it has no record 'data/1'"));
}

TEST_F(TorchFileTest, OtherArchivesAreRefused) {
  const auto refused_of = [&](const std::map<std::string, std::string>& others) {
    write_torch_archive(path_, Pickled::whole(dict_with(matrix())), {{"0", floats(12)}}, others);
    return message_of<UserError>([&] { open_torch_file(disk_, path_); });
  };
  EXPECT_THAT(refused_of({{"byteorder", "big"}}), HasSubstr("big-endian"));
  EXPECT_THAT(refused_of({{"constants.pkl", ""}}), HasSubstr("TorchScript"));
  write_torch_archive(path_, Pickled::whole(dict_with(matrix())), {{"0", std::string(1000, 'a')}}, {}, true);
  EXPECT_THAT(message_of<UserError>([&] { open_torch_file(disk_, path_); }),
              HasSubstr("its record 'data/0' is compressed"));
  write_text(path_, std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", 21));
  EXPECT_THAT(message_of<UserError>([&] { open_torch_file(disk_, path_); }), HasSubstr("before 1.6"));
  write_text(path_, "");
  EXPECT_THAT(message_of<UserError>([&] { open_torch_file(disk_, path_); }), StartsWith(path_));
}

TEST_F(TorchFileTest, EveryShorterFileIsRefusedByName) {
  open(dict_with(matrix()));
  const std::string whole = read_text(path_);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write_text(path_, whole.substr(0, bytes));
    EXPECT_THAT(message_of<UserError>([&] { open_torch_file(disk_, path_); }), StartsWith(path_)) << bytes;
  }
}

// libtorch would make room for all places up to this one.
TEST_F(TorchFileTest, ValuesHaveNoMorePlacesThanThePickleHasBytes) {
  EXPECT_THAT(refused(Pickled::number(3) + "r\xff\xff\xff\x5f"),
              HasSubstr("value 1610612735 is one of more than it can have"));
}

TEST_F(TorchFileTest, EveryShorterPickleIsRefusedByName) {
  const std::string whole = Pickled::whole(dict_with(matrix()));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write_torch_archive(path_, whole.substr(0, bytes), {{"0", floats(12)}});
    EXPECT_THAT(message_of<UserError>([&] { open_torch_file(disk_, path_); }),
                AllOf(StartsWith(path_), HasSubstr("of its pickle")))
        << bytes;
  }
}

class WeightsSetTest : public TorchFileTest {
 protected:
  void SetUp() override {
    open(dict_with(matrix()));
    std::filesystem::rename(path_, scratch_.path("b.bin"));
    write_index(R"({"weight_map": {"w": "b.bin"}})");
  }
  void write_index(const std::string& text) { write_text(index_, text); }
  std::string refused_set(const std::string& path) {
    return message_of<UserError>([&] { open_weights(disk_, path); });
  }
  std::string index_ = scratch_.path("pytorch_model.bin.index.json");
};

TEST_F(WeightsSetTest, OpensByItsIndexOrItsFolder) {
  for (const std::string& path : {index_, scratch_.path()})
    EXPECT_TRUE(read_all(*open_weights(disk_, path), "w").equal(numbers_)) << path;
}

TEST_F(WeightsSetTest, MissingFilesAndTensorsAreNamed) {
  write_index(R"({"weight_map": {"w": "b.bin", "v": "b.bin"}})");
  EXPECT_THAT(refused_set(index_),
              AllOf(StartsWith(scratch_.path("b.bin")), HasSubstr("it holds no tensor 'v'")));
  write_index(R"({"weight_map": {"w": "b.bin", "v": "c.bin"}})");
  EXPECT_THAT(refused_set(index_), HasSubstr(scratch_.path("c.bin") + ": there is no such file"));
  for (const char* text : {"", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {"w": 1}})",
                           R"({"weight_map": {"w": "../b.bin"}})"}) {
    write_index(text);
    EXPECT_THAT(refused_set(index_), StartsWith(index_)) << text;
  }
  std::filesystem::remove(index_);
  EXPECT_THAT(refused_set(scratch_.path()), HasSubstr("expected a folder with model.safetensors or"));
}

}  // namespace
}  // namespace tutti
