import { describe, expect, it } from 'vitest';
import { rejectedIdioms } from '../support/rejected-idioms.ts';
import { repositoryTexts } from '../support/source-files.ts';

/** Recorded output of other programs, the word list with its own test, and released sections of the changelog are not ours to reword. */
const EXEMPT = /(?:^|\/)(?:fixtures|golden)\/|rejected-idioms\.ts$|language\.test\.ts$|cli\/help\.test\.ts$|^LICENSE|\.json$/;
const CHECKED = /^(?:src|docs|test|templates|scripts|vagrant|packaging|deploy)\/.*\.(?:ts|mjs|md|hbs|sh)$|^(?:README|CHANGELOG)\.md$/;

/** Wordings that are right where they are: a file, and the lines of it that may contain one. */
const ALLOWED: readonly (readonly [file: RegExp, line: RegExp])[] = [
  // Names of shell functions and variables in scripts.
  [/^src\/(?:base\/text\/shell-program|host\/commit\/.*|host\/install\/operations)\.ts$|\.sh$/, /\b(?:say|told|tell|said|trouble|want)\b/],
  // The authority of a URL, and the table header of kubeadm.
  [/kubelet\/validate\/go-url\.ts$|support\/fake-web\.ts$|contract\/https-client\.test\.ts$|workflows\/discovery\//, /\bauthority\b/],
  [/cli\/kubeadm-output\.ts$/, /copying certificate authorities/],
  [/expiration-info|certs-control-plane\.test\.ts$/, /CERTIFICATE +.*AUTHORITY|^CERTIFICATE AUTHORITY|CERTIFICATE AUTHORITY/],
  [/kubeconfig\.test\.ts$/, /authority-data/],
  // Written to the disk of nodes by earlier versions, or the name of a flag.
  [/dynamic\/agent\/status\.ts$/, /EARLIER_TRIAL_PAUSED/],
  [/kubelet\.service\.d\/|plan-pointer-drop-in\.test\.ts$|agent-units\.ts$/, /where the agent says so|as it is written there/],
  [/dynamic-command\.ts$/, /'beside'/],
  [/^CHANGELOG\.md$/, /`fell-back`/],
  // Names of users and objects in tests, and recorded texts of other programs.
  [/^test\//, /\bnobody\b|'somebody'|say "hi"|The machine is not created|there is no\/|fixtures\/kubelet-trouble/],
  [/etcd-members\.ts$/, /does not count for the quorum/],
];

const isAllowed = (path: string, line: string): boolean => ALLOWED.some(([file, part]) => file.test(path) && part.test(line));

describe('the language of the repository', () => {
  it('uses no rejected idiom in texts, comments, names and test titles', () => {
    const found = [...repositoryTexts()]
      .filter(([path]) => CHECKED.test(path) && !EXEMPT.test(path))
      .flatMap(([path, text]) =>
        text
          .split('\n')
          .flatMap((line, i) => (isAllowed(path, line) ? [] : rejectedIdioms(line).map((idiom) => `${path}:${i + 1} ${idiom}`))),
      );
    expect(found).toEqual([]);
  });
});
