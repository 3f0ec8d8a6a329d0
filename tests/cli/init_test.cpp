// `tutti init` with hostile names and paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/init/draft.h"
#include "data/proposals/look.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "tests/cli/init_case.h"
#include "tests/data/readers/idx_text.h"
#include "tests/io/tokens/random_bytes.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kCommand =
    "\n[[loggers]]\nkind = \"command\"\ncommand = \"touch PWNED\"\n[x]\ny = \"\x1b[2J\xc2\x9b\xe2\x80\xae";

class InitTest : public InitCase {
 protected:
  // Images and labels by these names.
  std::string write(const std::string& file, const std::string& images, const std::string& labels) const {
    const std::string path = scratch_.path(file);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const hid_t out = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t groups = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(groups, 1);
    const hsize_t dims[] = {64, 8, 8, 1};
    for (const auto& [name, type, rank] :
         {std::tuple(images, H5T_STD_U8LE, 4), std::tuple(labels, H5T_STD_I64LE, 1)}) {
      const hid_t space = H5Screate_simple(rank, dims, nullptr);
      H5Dclose(H5Dcreate2(out, name.c_str(), type, space, groups, H5P_DEFAULT, H5P_DEFAULT));
      H5Sclose(space);
    }
    H5Pclose(groups);
    H5Fclose(out);
    return path;
  }

  std::string drafted(const std::string& data) const {
    return draft_recipe(placed(look_at(data), scratch_.path()),
                        {.command = "tutti init " + data, .schema = "file://" + data});
  }

  // The recipe is one that a reader sees as it is, and that names the data.
  void expect_harmless(const std::string& data) {
    const std::string text = drafted(data);
    EXPECT_EQ(printable(text), text);
    write_text(scratch_.path("recipe.toml"), text);
    const Setting recipe = read_recipe(scratch_.path("recipe.toml"));
    EXPECT_FALSE(recipe.has("loggers")) << text;
    const auto folder = std::filesystem::path(scratch_.path());
    const auto& train = recipe.at("data").at("train");
    const Setting* path = train.find("path");
    EXPECT_TRUE(std::filesystem::equivalent(folder / (path ? *path : train.at("images")).as_written(),
                                            path ? data : data + "/pictures-idx3-ubyte"))
        << text;
    resolve_recipe(recipe);
  }
};

TEST_F(InitTest, NamesOfArraysAddNothingToTheRecipe) {
  for (const std::string& where :
       {std::string(kCommand), std::string("y'''\"#") + kCommand, std::string("\xff")}) {
    const std::string data = write("data.h5", "train/images", "train/labels" + where);
    EXPECT_THAT(message_of<UserError>([&] { drafted(data); }),
                AllOf(HasSubstr("train/images: uint8 [64, 8, 8, 1]"),
                      HasSubstr("labels" + on_one_line(where) + ": not listed"), Not(HasSubstr("\n"))));
  }
  expect_harmless(write("data.h5", "train/images \"''' # \\n", "train/labels = 1 # \\"));
}

TEST_F(InitTest, AFileThatIsNotReadIsNamed) {
  const auto error = [&](const std::string& name, const std::string& bytes) {
    write_text(scratch_.path(name), bytes + std::string(5000, 'x'));
    return message_of<UserError>([&] { proposed(name); });
  };
  EXPECT_THAT(error("a.dat", "%PDF-1.7"), HasSubstr("looks like a PDF file"));
  EXPECT_THAT(error("a.gz", "\x1f\x8b"), HasSubstr("looks like a file compressed by gzip"));
  EXPECT_THAT(error("a.txt", std::string("\xff\xfeh\0i\0", 6)), HasSubstr("looks like a text in UTF-16"));
  EXPECT_THAT(error("a.gguf", std::string("GGUF\3\0\0\0", 8)), HasSubstr("looks like a GGUF file"));
  EXPECT_THAT(error("a.7z", "7z\xbc\xaf\x27\x1c"), HasSubstr("looks like a 7z archive"));
  EXPECT_THAT(error("a.bin", "Rar!\x1a\x07"), HasSubstr("looks like a RAR archive"));
  EXPECT_THAT(error("a.arrow", "ARROW1"), HasSubstr("looks like an Arrow file"));
  EXPECT_THAT(error("a.bin", std::string("\xff\xff\xff\xff\x78\0\0\0\x10\0\0\0", 12)),
              HasSubstr("looks like a stream of Arrow"));
  EXPECT_THAT(error("a.mp4", std::string("\0\0\0 ftypisom", 12)), HasSubstr("in MP4's container"));
  EXPECT_THAT(error("a.mat", "MATLAB 5.0 MAT-file, Platform"), HasSubstr("looks like a MAT-file"));
  EXPECT_THAT(error("a.txt", "caf\xe9"), HasSubstr("neither a text in UTF-8 nor tokens"));
  EXPECT_THAT(error("a.txt", "{\"text\": \"b\"}\n"), HasSubstr("JSON lines; call it .jsonl"));
  EXPECT_THAT(error("a.txt", "[\n{\"text\": \"b\"},"), HasSubstr("an array of JSON; call it .json"));
  EXPECT_THAT(error("a.json", "[\n{\"text\": \"b\"},"), HasSubstr("texts in JSON need a tokenizer"));
  std::string text = "in the beginning";
  for (int i = 0; i < 13; ++i) text += text;
  write_text(scratch_.path("t.txt"), text + "\xc3");
  EXPECT_THAT(proposed("t.txt").summary, HasSubstr("every byte is a token"));
}

TEST_F(InitTest, FilesOfGzipAreNamedWhateverTheyAreCalled) {
  for (const char* name : {"a.csv.gz", "a.gz", "a.jsonl.gz", "a.bin", "a.jsonl", "a.csv"}) {
    std::filesystem::copy(TUTTI_SOURCE_DIR "/tests/golden/mds/gz/shard.00000.mds.gz", scratch_.path(name));
    for (const char* tokenizer : {"", TUTTI_SOURCE_DIR "/tests/golden/tokenizers/gpt2.json"})
      EXPECT_THAT(message_of<UserError>([&] { proposed(name, tokenizer); }),
                  HasSubstr(std::string(name) + ": looks like a file compressed by gzip: unpack it"));
  }
}

TEST_F(InitTest, RandomBytesAreNoTokens) {
  write_text(scratch_.path("a.dat"), random_bytes(80'000));
  EXPECT_THAT(message_of<UserError>([&] { proposed("a.dat"); }),
              AllOf(HasSubstr("a.dat: looks like no tokens"), HasSubstr("dtype says if")));
}

TEST_F(InitTest, AnArrayOfInstructionsIsRead) {
  std::string array;
  for (int i = 0; i < 400; ++i)
    array += (i == 0 ? "[" : ",\n") +
             std::string(R"({"instruction": "Say this:", "input": "word", "output": "word"})");
  write_text(scratch_.path("alpaca.json"), array + "]");
  const Proposal alpaca = proposed("alpaca.json", TUTTI_SOURCE_DIR "/tests/golden/tokenizers/gpt2.json");
  const auto value = [&](const std::string& key) {
    for (const RecipeLine& line : alpaca.train)
      if (line.key == key) return line.value;
    return std::string();
  };
  EXPECT_EQ(value("kind"), "\"text\"");
  EXPECT_EQ(value("prompt_field"), "[\"instruction\", \"input\"]");
  EXPECT_EQ(value("response_field"), "\"output\"");
}

TEST_F(InitTest, PathsAddNothingToTheRecipe) {
  expect_harmless(write(std::string("data") + kCommand + ".h5", "images", "labels"));
  expect_harmless(write(std::string("a\r\nb\"'''/train") + kCommand + ".h5", "images", "labels"));
  const std::string folder = scratch_.path(std::string("idx") + kCommand);
  std::filesystem::create_directories(folder);
  write_text(folder + "/pictures-idx3-ubyte", idx_text({90, 4, 4}, std::string(90 * 16, 'x')));
  write_text(folder + "/classes-idx1-ubyte", idx_text({90}, std::string(90, '\3')));
  expect_harmless(folder);
}

TEST_F(InitTest, APathThatNoRecipeCanNameIsRefused) {
  const std::string data = write("data\xff.h5", "images", "labels");
  EXPECT_THAT(message_of<UserError>([&] { drafted(data); }), HasSubstr("not UTF-8; rename it"));
  EXPECT_EQ(message_of<UserError>([&] { drafted(scratch_.path("no\n\x1b.h5")); }),
            scratch_.path("no\\n\\x1b.h5") + ": no such file or folder");
}

TEST_F(InitTest, ANonFileIsNamed) {
  const std::string pipe = scratch_.path("pipe"), socket = scratch_.path("socket");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  for (const auto& [path, what] :
       {std::pair(pipe, "is a pipe, and no file"), std::pair(socket, "is a socket, and no file"),
        std::pair(std::string("/dev/null"), "is a device, and no file")})
    EXPECT_EQ(message_of<UserError>([&] { drafted(path); }), path + ": " + what);
}

TEST_F(InitTest, HeadersOfImagesThatCannotBeAreRefused) {
  const std::string images = scratch_.path("train-images-idx3-ubyte");
  write_text(scratch_.path("train-labels-idx1-ubyte"), idx_text({90}, std::string(90, '\3')));
  for (const std::string& text :
       {std::string(), idx_text({90, 4, 4, 1 << 20}, "x"), idx_text({90, 4, 4, 0}, "x"), idx_text({90}, "x"),
        std::string("\0\0\x08\x04\0\0\0\x09", 8)}) {
    write_text(images, text);
    EXPECT_THAT(message_of<UserError>([&] { drafted(scratch_.path()); }),
                HasSubstr(images + ": no IDX file of images"));
  }
}

class InitFoldersTest : public InitTest {
 protected:
  void add(const std::string& file) const {
    const std::filesystem::path path = scratch_.path(file);
    std::filesystem::create_directories(path.parent_path());
    write_text(path, "no look into it");
  }
};

class InitTextsTest : public InitFoldersTest {
 protected:
  Proposal of_objects(const std::string& object) const {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += object + '\n';
    write_text(scratch_.path("t.jsonl"), rows);
    return proposed("t.jsonl", TUTTI_SOURCE_DIR "/tests/golden/tokenizers/gpt2.json");
  }
};

TEST_F(InitTextsTest, PromptsAndResponsesAreKnownByTheirNames) {
  for (const auto& [prompt, response] : {std::pair("prompt", "completion"),
                                         {"instruction", "response"},
                                         {"question", "answer"},
                                         {"query", "response"},
                                         {"input", "output"}}) {
    const Proposal data = of_objects("{\"" + std::string(prompt) + "\": \"Say a word, please\", \"" +
                                     response + "\": \"a word, and another word\"}");
    EXPECT_EQ(line(data.train, "prompt_field"), '"' + std::string(prompt) + '"');
    EXPECT_EQ(line(data.train, "response_field"), '"' + std::string(response) + '"');
    EXPECT_THAT(data.remarks, IsEmpty());
  }
}

TEST_F(InitTextsTest, MembersThatAreNotReadAreNamed) {
  const Proposal with_context = of_objects(
      R"({"instruction": "Say this:", "context": "a word", "response": "a word", "category": "words"})");
  EXPECT_EQ(line(with_context.train, "prompt_field"), "[\"instruction\", \"context\"]");
  EXPECT_THAT(with_context.remarks, ElementsAre(HasSubstr("t.jsonl: members that are not read: 'category'")));
  const Proposal chat = of_objects(
      R"({"system": "Be brief.", "conversations": [{"from": "human", "value": "Hello"}], "history": []})");
  EXPECT_EQ(line(chat.train, "messages_field"), "\"conversations\"");
  EXPECT_THAT(chat.remarks, ElementsAre(HasSubstr("not read: 'system', 'history'")));
}

TEST_F(InitTextsTest, TextsOfNoKnownNameAreAskedAbout) {
  EXPECT_EQ(line(of_objects(R"({"tale": "Once there was a word, and another", "n": 1})").train, "text_field"),
            "\"tale\"");
  EXPECT_THAT(
      message_of<UserError>([&] { of_objects(R"({"tale": "Once there was a word", "by": "someone"})"); }),
      AllOf(HasSubstr("t.jsonl: its first object has several texts, of no known names: 'by', 'tale'"),
            HasSubstr("text_field"), HasSubstr("prompt_field")));
}

// "Training" and "Testing" are no classes.
TEST_F(InitFoldersTest, PartsOfDataAreKnownByTheirNamesInAnyCase) {
  for (const auto& [train, eval] :
       {std::pair("train", "val"), {"Train", "Valid"}, {"TRAINING", "Testing"}, {"training", "dev"}}) {
    const std::string folder = std::string("of_") + train;
    for (const std::string part : {train, eval})
      for (const char* name : {"/cat/1.jpg", "/dog/1.jpg"}) add(folder + '/' + part + name);
    const Proposal data = proposed(folder);
    EXPECT_EQ(line(data.train, "path"), '"' + folder + '/' + train + '"');
    EXPECT_EQ(line(data.eval, "path"), '"' + folder + '/' + eval + '"');
    EXPECT_EQ(data.count, 2);
  }
}

TEST_F(InitFoldersTest, ATrainMayBeAClassAndPartsMayNot) {
  for (const char* name : {"car/1.jpg", "train/1.jpg", "train/2.jpg"}) add(std::string("vehicles/") + name);
  EXPECT_THAT(proposed("vehicles").summary, HasSubstr("in folders of 2 classes"));
  EXPECT_EQ(line(proposed("vehicles").train, "path"), "\"vehicles\"");
  for (const char* name : {"Train/1.jpg", "Test/1.jpg"}) add(std::string("unsorted/") + name);
  EXPECT_THAT(message_of<UserError>([&] { proposed("unsorted"); }), HasSubstr("a folder without data"));
}

TEST_F(InitFoldersTest, PicturesBesideTheirMasksAreNoClasses) {
  for (const auto& [pictures, masks] : {std::pair("images", "masks"),
                                        {"JPEGImages", "SegmentationClass"},
                                        {"rgb", "depth"},
                                        {"train/img", "train/labels"}}) {
    const std::string folder = std::string("of_") + masks;
    for (const char* name : {"/1.png", "/2.png"}) {
      add(folder + '/' + pictures + name);
      add(folder + '/' + masks + (masks == std::string("labels") ? "/1.txt" : "/other.png"));
    }
    EXPECT_THAT(message_of<UserError>([&] { proposed(folder); }),
                AllOf(HasSubstr("look like pictures and their masks or labels"),
                      HasSubstr(std::filesystem::path(masks).filename())))
        << masks;
  }
  for (const char* name : {"with_mask/a.png", "without_mask/b.png"}) add(std::string("faces/") + name);
  EXPECT_THAT(proposed("faces").summary, HasSubstr("in folders of 2 classes"));
}

TEST_F(InitFoldersTest, FoldersOfFilesOfTheSameNamesAreAskedAbout) {
  for (const char* folder : {"high", "low"})
    for (const char* name : {"/sea.png", "/town.png"}) add(std::string("light/") + folder + name);
  EXPECT_THAT(proposed("light").remarks,
              ElementsAre(HasSubstr("files of the same names, such as 'sea': are they classes")));
  for (const char* folder : {"high", "low"})
    for (const char* name : {"/a_01.png", "/a_02.png"}) add(std::string("counted/") + folder + name);
  EXPECT_THAT(proposed("counted").remarks, IsEmpty());
}

TEST_F(InitFoldersTest, AClassWithoutImagesIsRefusedAndFilesLeftOutAreCounted) {
  for (const char* name : {"cat/1.bmp", "dog/1.jfif", "dog/2.xml", "dog/3.xml", "cow/1.TIF"})
    add(std::string("pets/") + name);
  EXPECT_THAT(proposed("pets").summary, HasSubstr("in folders of 3 classes"));
  EXPECT_EQ(proposed("pets").count, 3);
  EXPECT_THAT(proposed("pets").remarks, ElementsAre(HasSubstr("pets: 2 files are left out: 2 .xml")));
  add("pets/eel/1.heic");
  EXPECT_THAT(
      message_of<UserError>([&] { proposed("pets"); }),
      AllOf(HasSubstr("pets/eel: holds no .jpg"), HasSubstr("1 .heic"), HasSubstr("move the others away")));
}

TEST_F(InitFoldersTest, TarFilesMayLieInPartsOfTheirOwn) {
  for (const char* part : {"train", "val"}) {
    add(std::string("tars/") + part + "/000.tar");
    std::filesystem::copy(TUTTI_SOURCE_DIR "/tests/golden/images/shard-000.tar",
                          scratch_.path(std::string("tars/") + part + "/000.tar"),
                          std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_EQ(line(proposed("tars").train, "path"), "\"tars/train/000.tar\"");
  EXPECT_EQ(line(proposed("tars").eval, "path"), "\"tars/val/000.tar\"");
}

TEST_F(InitFoldersTest, TokensOfCompressedShardsAreLookedAt) {
  const std::string golden = TUTTI_SOURCE_DIR "/tests/golden/mds/";
  std::filesystem::copy(golden + "gz", scratch_.path("gz"));
  const Proposal data = proposed("gz");
  EXPECT_GT(std::get<TokenSamples>(data.samples).sequence_length, 0);
  EXPECT_GT(std::get<TokenSamples>(data.samples).vocabulary, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("gz/shard.00000.mds"))) << "the folder is as it was";
  write_text(scratch_.path("gz/shard.00000.mds.gz"), "no gzip");
  EXPECT_THAT(message_of<UserError>([&] { proposed("gz"); }), HasSubstr("shard.00000.mds.gz"));
}

TEST_F(InitFoldersTest, LabelsFrom1OnAreNumberedFrom0) {
  const auto npy = [&](const std::string& name, const std::string& facts, const std::string& bytes) {
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + facts + ", }";
    header += std::string(117 - header.size(), ' ') + '\n';
    write_text(scratch_.path(name), "\x93NUMPY\x01" + std::string(1, '\0') +
                                        static_cast<char>(header.size()) + std::string(1, '\0') + header +
                                        bytes);
  };
  npy("images.npy", "(4, 8, 8)", std::string(256, 'x'));
  npy("labels.npy", "(4,)", "\x01\x03\x02\x01");
  const Proposal data = proposed("");
  EXPECT_EQ(line(data.train, "first_class"), "1");
  EXPECT_THAT(data.summary, testing::EndsWith(", 3 classes"));
  npy("labels.npy", "(4,)", std::string("\x01\x03\x02\x00", 4));
  EXPECT_EQ(line(proposed("").train, "first_class"), "");
}

}  // namespace
}  // namespace tutti
