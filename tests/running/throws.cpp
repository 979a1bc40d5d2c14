// An error handler that throws: `throws FILE`
#include <cstdio>
#include <cstdlib>
#include <hdf5.h>
#include <string>

static herr_t handler(hid_t, void *) { throw std::string("an error"); }

struct Leaves {
    ~Leaves() { std::puts("left"); }
};

static void attempt(hid_t dataset) {
    Leaves leaves;
    float value;
    H5Dread(dataset, -1, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value);
    std::puts("no error");
}

int main(int, char **words) {
    hid_t file = H5Fopen(words[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, handler, nullptr);
    try {
        attempt(dataset);
    } catch (const std::string &what) {
        std::printf("caught %s\n", what.c_str());
    }
    std::fflush(stdout);
    std::_Exit(0);
}
