import { describe, it } from 'vitest';
import { findRealBinaries, startRealApiServer, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { servingCsrAttack } from '../support/serving-csr-attack.ts';

const TITLE = 'csr approve against kube-apiserver and the signer of kube-controller-manager';
const binaries = findRealBinaries();
const missing = whyNoControlPlane();

if (typeof binaries === 'string' || missing !== null) {
  describe.skipIf(requirement(TITLE, missing))(TITLE, () => {
    it('is not tested', () => undefined);
  });
} else servingCsrAttack(TITLE, () => startRealApiServer(binaries, { withControllerManager: true }));
