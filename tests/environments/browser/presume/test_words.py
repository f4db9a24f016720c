"""What names of controls say."""

from __future__ import annotations

import pytest

from exact.environments.browser.presume.words import agrees, copies, writing_word

WRITES = {
    "en": "Buy now|Delete|Send message|Save changes|Pay|Book now|Submit|Add to cart|Place your order|Log out|Subscribe",
    "de": "Jetzt kaufen|Löschen|Nachricht senden|Speichern|Bezahlen|Buchen|Absenden|In den Warenkorb|Zahlungspflichtig bestellen|Kündigen",
    "fr": "Acheter|Supprimer|Envoyer|Enregistrer|Payer|Réserver|Valider|Ajouter au panier|Passer commande et payer|S'abonner",
    "es": "Comprar ahora|Eliminar|Enviar|Guardar|Pagar|Reservar|Confirmar pedido|Añadir al carrito|Suscribirse",
    "it": "Acquista ora|Elimina|Invia|Salva|Paga|Prenota|Conferma ordine|Aggiungi al carrello|Iscriviti",
    "pt": "Comprar|Excluir|Enviar|Salvar|Pagar|Reservar|Finalizar compra|Adicionar ao carrinho|Assinar",
    "nl": "Nu kopen|Verwijderen|Versturen|Opslaan|Betalen|Boeken|Bevestigen|In winkelwagen|Abonneren",
    "pl": "Kup teraz|Usuń|Wyślij|Zapisz|Zapłać|Zarezerwuj|Potwierdź|Dodaj do koszyka|Złóż zamówienie",
    "ru": "Купить|Удалить|Отправить|Сохранить|Оплатить|Забронировать|Подтвердить|Добавить в корзину|Оформить заказ",
    "zh": "立即购买|删除|发送|保存|支付|预订|提交|加入购物车|確認|結帳",
    "ja": "購入する|削除|送信|保存|支払う|予約する|投稿|カートに入れる|ログアウト",
}
READS = {
    "en": "Search|Search orders|Show deleted items|Next|Back|Sort by price|View cart|Preview|Orders|Books|Details|Yesterday",
    "de": "Suchen|Zurück|Weiter|Filtern|Anzeigen|Bestellungen|Bücher|Vorschau",
    "fr": "Rechercher|Suivant|Retour|Afficher plus|Commandes|Livres",
    "es": "Buscar|Siguiente|Volver|Ver pedidos|Filtrar", "it": "Cerca|Avanti|Indietro|Mostra altro", "pt": "Procurar|Voltar|Ver mais",
    "nl": "Zoeken|Volgende|Terug|Toon meer", "pl": "Szukaj|Dalej|Wstecz|Pokaż", "ru": "Найти|Далее|Назад|Показать ещё",
    "zh": "搜索|下一页|返回|查看订单|关闭", "ja": "検索|次へ|戻る|詳細を表示|閉じる",
}  # fmt: skip


@pytest.mark.parametrize(("language", "name"), [(code, name) for code, names in WRITES.items() for name in names.split("|")])
def test_a_button_that_changes_something_says_so_in_eleven_languages(language: str, name: str) -> None:
    assert writing_word(name), language


@pytest.mark.parametrize(("language", "name"), [(code, name) for code, names in READS.items() for name in names.split("|")])
def test_a_button_that_only_reads_says_nothing_of_a_change(language: str, name: str) -> None:
    assert not writing_word(name), language


@pytest.mark.parametrize("name", ["How to delete a file", "Save 20 % on all shoes this week", "The book of sand", "Orders of magnitude"])
def test_a_link_that_is_a_title_is_no_command(name: str) -> None:
    assert not writing_word(name, link=True)


def test_accents_case_and_spaces_do_not_matter() -> None:
    assert writing_word("  LÖSCHEN ") and writing_word("Lo\u0308schen") and writing_word("delete\u00a0it")


def test_yes_agrees_in_several_languages_and_no_does_not() -> None:
    assert all(map(agrees, ("Yes", "OK", "Ja, löschen", "Oui", "Sí", "Sì", "Да", "确定", "はい")))
    assert not any(map(agrees, ("No", "Cancel", "Abbrechen", "Yesterday", "")))


def test_copying_is_told_from_other_commands() -> None:
    assert copies("Copy link") and copies("Kopieren") and copies("复制") and not copies("Copyright notice of this site and others")
