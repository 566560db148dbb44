import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '../../src/base/errors.ts';
import type { Host } from '../../src/host/access/host.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { RangedFile } from '../../src/host/operation/large-file.ts';
import type { Operation } from '../../src/host/operation/operation.ts';
import type { Transport } from '../../src/host/transport.ts';
import { shellTransport } from '../support/shell-transport.ts';
import { ofThisProject, SHELLS } from '../support/shells.ts';

const CONTENT = randomBytes(4_000_000);
const SHA256 = createHash('sha256').update(CONTENT).digest('hex');
const UPLOADS = 'var/lib/kubeletadm/uploads';

describe.each(ofThisProject(SHELLS))('an upload in $name', ({ missing, options }) => {
  let directory = '';
  let transport: Transport;
  let offsets: number[] = [];
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'ka-upload-'));
    mkdirSync(join(directory, 'tools'));
    transport = shellTransport(options(join(directory, 'tools')));
    offsets = [];
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const at = (path: string): string => join(directory, 'root', path);
  const file = (failsAt = Number.POSITIVE_INFINITY): RangedFile => ({
    sha256: SHA256,
    size: CONTENT.length,
    read: async (offset, length) => {
      offsets.push(offset);
      if (offset >= failsAt) throw new AppError({ code: 'HOST_CONNECTION_LOST', message: 'lost' });
      return CONTENT.subarray(offset, offset + length);
    },
  });
  const host = (): Host => hostOverTransport(transport, { nonce: randomUUID, rootDir: join(directory, 'root') });
  const upload = (path: string, content: RangedFile): Operation => ({
    kind: 'upload-file',
    path,
    mode: 0o755,
    owner: 'root:root',
    content,
  });
  const perform = (operation: Operation): Promise<void> => {
    mkdirSync(join(directory, 'root'), { recursive: true });
    return host().perform([operation]);
  };

  it.skipIf(missing)('installs the file when it is complete, and leaves nothing else', async () => {
    await perform(upload('/opt/bin/kubelet', file()));
    expect(readFileSync(at('opt/bin/kubelet')).equals(CONTENT)).toBe(true);
    expect(statSync(at('opt/bin/kubelet')).mode & 0o777).toBe(0o755);
    expect([...readdirSync(at('opt/bin')), ...readdirSync(at(UPLOADS))]).toEqual(['kubelet']);
    expect(statSync(at(UPLOADS)).mode & 0o777).toBe(0o700);
  });

  it.skipIf(missing)('continues where it was interrupted, in another run', async () => {
    await expect(perform(upload('/opt/kubelet', file(1_500_000)))).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST' });
    expect(existsSync(at('opt/kubelet'))).toBe(false);
    offsets = [];
    await perform(upload('/opt/kubelet', file()));
    expect(offsets).toEqual([1_500_000, 3_000_000]);
    expect(readFileSync(at('opt/kubelet')).equals(CONTENT)).toBe(true);
  });

  it.skipIf(missing)('continues from any length, and starts again from too much', async () => {
    mkdirSync(at(UPLOADS), { recursive: true });
    writeFileSync(at(`${UPLOADS}/${SHA256}.part`), CONTENT.subarray(0, 2_345_677));
    await perform(upload('/opt/kubelet', file()));
    expect(offsets[0]).toBe(2_345_677);
    writeFileSync(at(`${UPLOADS}/${SHA256}.part`), Buffer.alloc(CONTENT.length + 1));
    offsets = [];
    await perform(upload('/opt/again', file()));
    expect(offsets[0]).toBe(0);
    expect(readFileSync(at('opt/again')).equals(CONTENT)).toBe(true);
  });

  it.skipIf(missing)('removes a damaged upload, so that the next run sends it again', async () => {
    mkdirSync(at(UPLOADS), { recursive: true });
    writeFileSync(at(`${UPLOADS}/${SHA256}.part`), Buffer.alloc(2_000_000));
    await expect(perform(upload('/opt/kubelet', file()))).rejects.toMatchObject({
      message: expect.stringContaining('the file was damaged during the transfer'),
    });
    expect(readdirSync(at(UPLOADS))).toEqual([]);
    await perform(upload('/opt/kubelet', file()));
    expect(readFileSync(at('opt/kubelet')).equals(CONTENT)).toBe(true);
  });

  it.skipIf(missing)('sends nothing to a host that reports an impossible length', async () => {
    for (const length of ['-1', '4000001', 'x']) {
      const run: Transport['run'] = async (...call) => {
        const result = await transport.run(...call);
        return { ...result, stdout: Buffer.from(Buffer.from(result.stdout).toString('latin1').replace(/^0$/m, length), 'latin1') };
      };
      const hostile = hostOverTransport({ ...transport, run }, { nonce: randomUUID, rootDir: join(directory, 'root') });
      mkdirSync(join(directory, 'root'), { recursive: true });
      await expect(hostile.perform([upload('/opt/kubelet', file())])).rejects.toMatchObject({ code: 'HOST_OPERATION_FAILED' });
    }
    expect(offsets).toEqual([]);
  });

  it.skipIf(missing)('is not repeated for a command that failed after it', async () => {
    const path = `/${UPLOADS}/${SHA256}`;
    await perform(upload(path, file()));
    offsets = [];
    await perform(upload(path, file()));
    expect(offsets).toEqual([]);
    expect(readdirSync(at(UPLOADS))).toEqual([SHA256]);
  });
});
