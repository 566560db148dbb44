import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { downloadFile } from '../../../../src/host/install/operations.ts';
import { requirement } from '../../../support/requirement.ts';
import { findProgram } from '../../../support/shells.ts';

const isRoot = process.getuid?.() === 0;

describe.skipIf(requirement('fetching a file', !isRoot || findProgram('curl') === null ? 'requires root and curl' : null))(
  'downloadFile',
  () => {
    let top = '';
    beforeEach(() => {
      top = mkdtempSync(join(tmpdir(), 'download-'));
      writeFileSync(join(top, 'source'), 'program\n');
    });
    afterEach(() => rmSync(top, { recursive: true, force: true }));

    const download = (sha256: string): void => {
      const { argv } = downloadFile({ path: join(top, 'bin/kubelet'), url: `file://${join(top, 'source')}`, sha256, mode: 0o755 });
      const [program = '', ...args] = argv;
      execFileSync(program, args, { stdio: 'pipe' });
    };
    const SHA256 = createHash('sha256').update('program\n').digest('hex');

    it('installs the file with its mode, and leaves no other file', () => {
      download(SHA256);
      expect(readFileSync(join(top, 'bin/kubelet'), 'utf8')).toBe('program\n');
      expect(lstatSync(join(top, 'bin/kubelet')).mode & 0o7777).toBe(0o755);
      expect(readdirSync(join(top, 'bin'))).toEqual(['kubelet']);
    });

    it('leaves no file when the hash differs', () => {
      expect(() => download('0'.repeat(64))).toThrow(/the file has the SHA-256/);
      expect(readdirSync(join(top, 'bin'))).toEqual([]);
    });

    it('writes nothing through a link at a predictable name', () => {
      mkdirSync(join(top, 'bin'));
      writeFileSync(join(top, 'victim'), 'original\n');
      symlinkSync(join(top, 'victim'), join(top, 'bin/kubelet.download'));
      download(SHA256);
      expect(readFileSync(join(top, 'victim'), 'utf8')).toBe('original\n');
      expect(lstatSync(join(top, 'bin/kubelet')).isFile()).toBe(true);
    });
  },
);
