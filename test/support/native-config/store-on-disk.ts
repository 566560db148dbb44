import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  type MetaFile,
  nativeCheckpointDirectory,
  nativeStorePaths,
  parseMetaFile,
  renderMetaFile,
} from '../../../src/dynamic/native/native-store.ts';
import type { ConfigIdentity } from '../../../src/kubelet/layers/config-source.ts';

/** The error with which the kubelet exits with code 1. */
export class FatalStoreError extends Error {}

/**
 * The store of a kubelet's dynamic configuration in a real directory, as written by kubelets 1.11 to 1.23.
 * File times follow the kubelet's clock.
 */
export class StoreOnDisk {
  readonly #directory: string;
  readonly #now: () => number;

  constructor(directory: string, now: () => number) {
    this.#directory = directory;
    this.#now = now;
  }

  /** Creates missing parts. @throws FatalStoreError when a meta file is not a regular file */
  ensure(): void {
    const { meta, assigned, lastKnownGood, checkpoints } = nativeStorePaths(this.#directory);
    for (const directory of [meta, checkpoints]) mkdirSync(directory, { recursive: true, mode: 0o755 });
    for (const file of [assigned, lastKnownGood]) {
      if (!existsSync(file)) this.#write(file, '', 0o644);
      else if (!lstatSync(file).isFile()) throw new FatalStoreError(`expected regular file at "${file}", but mode is "d---------"`);
    }
  }

  assigned(): MetaFile {
    return parseMetaFile(readFileSync(nativeStorePaths(this.#directory).assigned, 'utf8'));
  }

  lastKnownGood(): MetaFile {
    return parseMetaFile(readFileSync(nativeStorePaths(this.#directory).lastKnownGood, 'utf8'));
  }

  setAssigned(identity: ConfigIdentity | null): void {
    this.#replace(nativeStorePaths(this.#directory).assigned, identity);
  }

  setLastKnownGood(identity: ConfigIdentity | null): void {
    this.#replace(nativeStorePaths(this.#directory).lastKnownGood, identity);
  }

  /** Milliseconds since `meta/assigned` was written: the age of a trial. */
  assignedAgeMs(): number {
    return this.#now() - statSync(nativeStorePaths(this.#directory).assigned).mtimeMs;
  }

  hasCheckpoint(identity: ConfigIdentity): boolean {
    return existsSync(nativeCheckpointDirectory(this.#directory, identity));
  }

  /** The path of a payload, existing or not. */
  payloadFile(identity: ConfigIdentity): string {
    return join(nativeCheckpointDirectory(this.#directory, identity), identity.kubeletConfigKey);
  }

  /** @throws Error when a key is not a valid file name; nothing is written then */
  saveCheckpoint(identity: ConfigIdentity, data: Readonly<Record<string, string>>): void {
    for (const key of Object.keys(data)) refuseFileKey(key);
    const directory = nativeCheckpointDirectory(this.#directory, identity);
    mkdirSync(join(directory, '..'), { recursive: true, mode: 0o755 });
    const temporary = join(directory, '..', `tmp_${identity.resourceVersion}${this.#now()}`);
    mkdirSync(temporary, { mode: 0o700 });
    for (const [key, text] of Object.entries(data)) this.#write(join(temporary, key), text, 0o644);
    renameSync(temporary, directory);
  }

  #replace(file: string, identity: ConfigIdentity | null): void {
    if (identity?.uid === '') throw new Error('failed to write RemoteConfigSource, empty UID is ambiguous');
    const temporary = `${dirname(file)}/tmp_${basename(file)}${this.#now()}`;
    this.#write(temporary, renderMetaFile(identity), 0o600);
    renameSync(temporary, file);
  }

  #write(file: string, text: string, mode: number): void {
    writeFileSync(file, text, { mode });
    chmodSync(file, mode);
    const seconds = this.#now() / 1000;
    utimesSync(file, seconds, seconds);
  }
}

function refuseFileKey(key: string): void {
  if (key === '') throw new Error('invalid file key: must not be empty: ""');
  if (key.includes('/')) throw new Error(`invalid file key ${JSON.stringify(key)}, only base names are allowed`);
  if (key === '.' || key === '..') throw new Error("invalid file key, may not be '.' or '..'");
  if (key.length > 255) throw new Error(`invalid file key ${JSON.stringify(key)}, must be less than 255 characters`);
}
