// A main() for compilers without libFuzzer: runs the driver on each file, or on all files of each folder.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    std::cerr << path.string() << std::endl;  // before it runs: after a crash the last name is the cause
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int count, char** arguments) {
    int replayed = 0;
    for (int k = 1; k < count; ++k) {
        if (arguments[k][0] == '-') continue;  // an option of libFuzzer
        if (!std::filesystem::is_directory(arguments[k])) {
            replay(arguments[k]);
            ++replayed;
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(arguments[k])) {
            replay(entry.path());
            ++replayed;
        }
    }
    std::cerr << replayed << " files replayed" << std::endl;
    return replayed > 0 ? 0 : 1;
}
