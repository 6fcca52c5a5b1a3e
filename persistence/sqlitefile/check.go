package sqlitefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/threadcast/threadcast/persistence/thread"
)

// The parts of a database's first bytes that inspect reads; see sqlite.org/fileformat2.html, section 1.3.
const (
	headerSize  = 100
	magic       = "SQLite format 3\x00"
	atPageSize  = 16 // 2 bytes; 1 stands for 65,536
	atChanges   = 24 // 4 bytes: the change counter
	atPageCount = 28 // 4 bytes
	atCountedAt = 92 // 4 bytes: the change counter when the page count was written
)

// inspect looks at the file before SQLite does, which would quietly start anew from an empty file beside a
// write-ahead log, and does not say of a truncated file that it is one.
func inspect(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the database file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the database file: %w", err)
	}
	logged := walSize(path) > 0
	if info.Size() == 0 {
		if logged {
			return damaged(path, "it is empty, but "+path+"-wal is not")
		}
		return nil
	}
	header := make([]byte, headerSize)
	n, err := io.ReadFull(file, header)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read the database file: %w", err)
	}
	switch {
	case !bytes.HasPrefix(header, []byte(magic)):
		return notDatabase(path)
	case n < headerSize:
		return damaged(path, "it ends within its header")
	case !logged:
		return checkSize(path, info.Size(), wantSize(header))
	}
	return nil
}

func walSize(path string) int64 {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// wantSize is the size that the header tells, or 0 if it tells none.
func wantSize(header []byte) int64 {
	if !bytes.Equal(header[atChanges:atChanges+4], header[atCountedAt:atCountedAt+4]) {
		return 0
	}
	page := int64(binary.BigEndian.Uint16(header[atPageSize:]))
	if page == 1 {
		page = 65536
	}
	return page * int64(binary.BigEndian.Uint32(header[atPageCount:]))
}

func checkSize(path string, size, want int64) error {
	if size < want {
		return damaged(path, fmt.Sprintf("it has %d bytes and should have %d", size, want))
	}
	return nil
}

// verify tells whether SQLite can read and write the file, and whether it is whole.
func (f *File) verify(ctx context.Context, limit int64) error {
	var mode string
	if err := f.writer.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return describe(f.path, "open", err)
	}
	if mode != "wal" {
		return fmt.Errorf("open %s: SQLite cannot use a write-ahead log there (its journal mode stays %q); "+
			"put the file on a local disk: %w", f.path, mode, thread.ErrUnavailable)
	}
	tx, err := f.writer.BeginTx(ctx, nil)
	if err != nil {
		return describe(f.path, "open", err)
	}
	if err := tx.Rollback(); err != nil {
		return describe(f.path, "open", err)
	}
	if err := f.verifySize(ctx); err != nil {
		return err
	}
	return f.verifyPages(ctx, limit)
}

// verifySize compares the file's size with what SQLite takes it for, once nothing is in the write-ahead log alone.
func (f *File) verifySize(ctx context.Context) error {
	all, err := f.checkpoint(ctx)
	if err != nil {
		return describe(f.path, "open", err)
	}
	var want int64
	if err := f.writer.QueryRowContext(ctx,
		"SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&want); err != nil {
		return describe(f.path, "open", err)
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("read the database file: %w", err)
	}
	if !all {
		return nil // another program reads the file: the log cannot be moved yet
	}
	return checkSize(f.path, info.Size(), want)
}

// verifyPages looks at every page of a file that is not too great for that.
func (f *File) verifyPages(ctx context.Context, limit int64) error {
	if info, err := os.Stat(f.path); err != nil || info.Size() >= limit {
		return err
	}
	var found string
	if err := f.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return describe(f.path, "check", err)
	}
	if found != "ok" {
		return damaged(f.path, found)
	}
	return nil
}
