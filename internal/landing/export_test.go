package landing

var FileList = fileList
