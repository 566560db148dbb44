import { AppError } from '../../base/errors.ts';
import { isUrl } from '../../host/install/model.ts';
import type { LargeFile } from '../../host/plan/large-file.ts';
import type { PrepareHostOptions } from '../../kubeadm/workflows/prepare-host.ts';
import type { FleetRunPorts } from '../ports.ts';
import { besideFleet } from './load-fleet.ts';

const MAX_REDIRECTIONS = 5;
/** A key file has a few KiB. */
const MAX_KEY_BYTES = 1024 * 1024;

export type InstallSources = Pick<PrepareHostOptions, 'templates' | 'readKey' | 'readFile'>;

/**
 * Local files for the hosts of a fleet: templates, keys of repositories, and programs. Each key and program is
 * read once, when the first host requires it.
 * @param directory of the fleet file, for relative paths
 */
export async function installSources(services: FleetRunPorts, directory: string): Promise<InstallSources> {
  const pathOf = (path: string): string => besideFleet(path, `${directory}/fleet`, services.homeDirectory);
  return {
    templates: await services.templates(),
    readKey: once((source) => (isUrl(source) ? fetchKey(services, source) : services.input.readText(pathOf(source)))),
    readFile: once((path) => readProgram(services, pathOf(path))),
  };
}

function once<T>(read: (source: string) => Promise<T>): (source: string) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (source) => {
    const reading = known.get(source) ?? read(source);
    known.set(source, reading);
    return reading;
  };
}

async function readProgram(services: FleetRunPorts, path: string): Promise<LargeFile> {
  return (await services.readProgram(path)) as LargeFile;
}

/** Follows redirects: the fingerprint authenticates the key, regardless of the server. */
async function fetchKey({ web, signal }: FleetRunPorts, source: string): Promise<string> {
  const refuse = (why: string): AppError =>
    new AppError({
      code: 'INSTALL_KEY_UNREACHABLE',
      message: `cannot fetch ${source}: ${why}`,
      hint: 'Check the URL and the proxy, or save the key and write its path as packages.key',
    });
  let url = source;
  for (let i = 0; i <= MAX_REDIRECTIONS; i++) {
    const answer = await web.get({ url, trust: { kind: 'machine' }, maxBytes: MAX_KEY_BYTES, signal });
    if (answer.kind === 'failed') throw refuse(answer.issue.kind);
    if (answer.status === 200) return answer.text;
    if (answer.status < 300 || answer.status > 399 || answer.location === null) throw refuse(`the server answered ${answer.status}`);
    url = new URL(answer.location, url).href;
    if (!url.startsWith('https:')) throw refuse('redirected to a URL without TLS');
  }
  throw refuse('too many redirects');
}
